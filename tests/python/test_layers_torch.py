"""Every layer that PyTorch has too: printing, options, state dicts, values and gradients beside
PyTorch's, in float32 and float64. The constructors and inputs are those of layer_cases.py."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import _C, nn
from layer_cases import CASES

if HAS_TORCH:
    import torch

# Draw random numbers in training mode, which are others in PyTorch.
RANDOM = {
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU",
    "FractionalMaxPool2d", "FractionalMaxPool3d",
}  # fmt: skip
# Draw them in every mode, unless _random_samples are given.
ALWAYS_RANDOM = {"FractionalMaxPool2d", "FractionalMaxPool3d"}

# PyTorch's gradient has a factor 1 / 6 in single precision.
COARSE = {"Hardsigmoid", "Hardswish"}
# PyTorch gives no gradient of the target; of CTC's it gives one that is right behind log_softmax.
ONLY_INPUT = {"SoftMarginLoss", "MultiLabelSoftMarginLoss"}
OTHER_GRADIENT = {"CTCLoss"}
ROWS = {row["name"]: row for row in _C._layers()}

EACH = [
    pytest.param(name, args, kwargs, id=f"{name}-{i}")
    for name, (legal, _, _) in CASES.items()
    if HAS_TORCH and hasattr(torch.nn, name)
    for i, (args, kwargs) in enumerate(legal)
]


def theirs_of(value):
    if isinstance(value, kiln.Tensor):
        return torch.from_numpy(value.numpy().copy())
    if isinstance(value, (tuple, list)):
        return type(value)(theirs_of(v) for v in value)
    return value


def inputs_of(name, dtype):
    """What forward takes, twice; tensors of floats require a gradient."""
    mine, theirs = [], []
    for x in CASES[name][1]():
        if not isinstance(x, kiln.Tensor):
            mine.append(x)
            theirs.append(theirs_of(x))
        elif x.is_floating_point() and not (name in ONLY_INPUT and mine):
            mine.append(x.to(getattr(kiln, dtype)).detach().requires_grad_())
            theirs.append(theirs_of(x.to(getattr(kiln, dtype))).requires_grad_())
        else:
            x = x.to(getattr(kiln, dtype)) if x.is_floating_point() else x
            mine.append(x)
            theirs.append(theirs_of(x))
    return mine, theirs


def theirs_layer(name, args, kwargs):
    """PyTorch's layer. By name, for PyTorch has deprecated arguments among those of losses."""
    row = ROWS[name]
    if row["takes_anything"]:
        return getattr(torch.nn, name)(*args, **kwargs)
    named = dict(zip([option for option, *_ in row["options"]], args)) | kwargs
    return getattr(torch.nn, name)(**{k: theirs_of(v) for k, v in named.items()})


def flat(out):
    """The tensors of a result that may be a tuple of tuples."""
    return [y for x in out for y in flat(x)] if isinstance(out, (tuple, list)) else [out]


def close(mine, theirs, dtype, what):
    assert (mine is None) == (theirs is None), what
    if theirs is None:
        return
    assert str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1], what
    assert tuple(mine.shape) == tuple(theirs.shape), what
    theirs = theirs.to_dense() if theirs.is_sparse else theirs
    bound = {"float32": (2e-4, 1e-4), "float64": (1e-9, 1e-11), "coarse": (1e-6, 1e-7)}[dtype]
    bound = dict(zip(("rtol", "atol"), bound))
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), **bound, err_msg=what)


def ramp(library, x):
    """Other weights for each element, so that a sum hides nothing."""
    return library.linspace(0.5, 1.5, max(x.numel(), 1), dtype=x.dtype)[: x.numel()].reshape(x.shape)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,args,kwargs", EACH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_are_pytorchs(name, args, kwargs, dtype):
    mine = getattr(nn, name)(*args, **kwargs)
    theirs = theirs_layer(name, args, kwargs)
    assert repr(mine) == repr(theirs)
    mine.to(getattr(kiln, dtype))
    theirs.to(getattr(torch, dtype))
    state = theirs.state_dict()
    assert [(k, tuple(v.shape)) for k, v in mine.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in state.items()
    ]
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in state.items()})
    for training in (True, False):
        if name in ALWAYS_RANDOM and len(args) < 5 or training and name in RANDOM:
            continue
        mine.train(training)
        theirs.train(training)
        ours, others = inputs_of(name, dtype)
        # A leaf must not be written in place.
        inplace = getattr(mine, "inplace", False)
        got = mine(*[x * 1 if inplace and isinstance(x, kiln.Tensor) else x for x in ours])
        expected = theirs(*[x * 1 if inplace and isinstance(x, torch.Tensor) else x for x in others])
        got, expected = flat(got), flat(expected)
        assert len(got) == len(expected)
        for i, (x, y) in enumerate(zip(got, expected)):
            close(x, y, dtype, f"result {i}, training {training}")
        if name in OTHER_GRADIENT:
            continue
        mine.zero_grad()
        theirs.zero_grad()
        bounds = "coarse" if name in COARSE else dtype
        sums = [
            sum((x * ramp(library, x)).sum() for x in out if x.requires_grad)
            for library, out in ((kiln, got), (torch, expected))
        ]
        if isinstance(sums[1], torch.Tensor):
            sums[0].backward()
            sums[1].backward()
        for i, (x, y) in enumerate(zip(ours, others)):
            if isinstance(y, torch.Tensor):
                close(x.grad, y.grad, bounds, f"gradient of input {i}")
        for (key, p), q in zip(mine.named_parameters(), theirs.parameters()):
            close(p.grad, q.grad, dtype, f"gradient of {key}")
        for (key, b), c in zip(mine.named_buffers(), theirs.buffers()):
            close(b, c, dtype, f"buffer {key}")


# What is compared with PyTorch's in other files, for it is no row of the table of layers.
ELSEWHERE = {
    "DataParallel": "test_distributed", "SyncBatchNorm": "test_distributed",
    "AdaptiveLogSoftmaxWithLoss": "test_composed_layers", "LinearCrossEntropyLoss": "test_composed_layers",
    "TripletMarginWithDistanceLoss": "test_composed_layers",
    "MultiheadAttention": "test_attention", "Transformer*": "test_composed_layers",
    "Lazy*": "test_lazy_layers", "Module": "test_module", "Module*": "test_layers",
    "Parameter*": "test_layers", "Sequential": "test_layers",
}  # fmt: skip


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_every_layer_is_in_a_table():
    import fnmatch
    import re
    from pathlib import Path

    here = Path(__file__).parent
    page = (here / "../../docs/pytorch-names.md").read_text()
    missing = set(re.findall(r"`([\w*]+)`", page.split("## Keywords")[0]))
    left = []
    for name in dir(torch.nn):
        kind = getattr(torch.nn, name)
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)) or name in CASES:
            continue
        files = [file for pattern, file in ELSEWHERE.items() if fnmatch.fnmatchcase(name, pattern)]
        if hasattr(nn, name):
            found = files and (files[0] == "test_lazy_layers" or name in (here / f"{files[0]}.py").read_text())
        else:
            found = name in missing
        if not found:
            left.append(name)
    assert not left


# Options that PyTorch's modules keep under other names or in other forms.
OTHERWISE = {
    ("PairwiseDistance", "p"), ("PReLU", "init"), ("Linear", "bias"),
    *((f"FractionalMaxPool{d}d", option) for d in (2, 3)
      for option in ("kernel_size", "output_size", "output_ratio")),
}  # fmt: skip


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,args,kwargs", EACH)
def test_options_are_pytorchs_attributes(name, args, kwargs):
    mine = getattr(nn, name)(*args, **kwargs)
    theirs = theirs_layer(name, args, kwargs)
    for option, *_ in ROWS[name]["options"]:
        value = getattr(theirs, option, None)
        if (name, option) in OTHERWISE or value is None or isinstance(value, torch.Tensor):
            continue
        assert getattr(mine, option) == value, option
