"""Modules and names of PyTorch's that its programs import beside tensors and layers."""

import http.server
import importlib.util
import inspect
import pathlib
import pickle
import pkgutil
import threading
import typing

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import nn


@pytest.mark.parametrize(
    "name",
    """accelerator distributed functional hub jit mps multiprocessing serialization testing types version nn.modules.utils
    nn.modules.batchnorm nn.modules.conv nn.modules.loss nn.parallel
    nn.parallel.distributed nn.parameter optim.lr_scheduler distributed.nn utils.data.dataloader
    utils.data.distributed utils.model_zoo""".split(),
)
def test_modules_are_imported_by_their_paths(name):
    module = importlib.import_module(f"kiln.{name}")
    found = kiln
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


def test_modules_that_are_not_there_are_on_the_page():
    torch = pytest.importorskip("torch")
    page = (pathlib.Path(__file__).parents[2] / "docs" / "pytorch-names.md").read_text()
    section = page.split("## Modules")[1].split("## Keywords")[0]
    for info in pkgutil.iter_modules(torch.__path__):
        if info.name.startswith("_"):
            continue
        is_here = importlib.util.find_spec(f"kiln.{info.name}") is not None
        is_listed = f"`torch.{info.name}`" in section
        assert is_here != is_listed, f"torch.{info.name}: here {is_here}, on the page {is_listed}"


def test_families_of_layers(lib):
    modules = lib.nn.modules
    for family, inside, outside in (
        (modules.batchnorm._BatchNorm, lib.nn.BatchNorm2d(2), lib.nn.GroupNorm(1, 2)),
        (modules.batchnorm._NormBase, lib.nn.InstanceNorm1d(2), lib.nn.LayerNorm(2)),
        (modules.instancenorm._InstanceNorm, lib.nn.InstanceNorm3d(2), lib.nn.BatchNorm1d(2)),
        (modules.conv._ConvNd, lib.nn.ConvTranspose1d(1, 1, 1), lib.nn.Linear(1, 1)),
        (modules.conv._ConvTransposeNd, lib.nn.ConvTranspose2d(1, 1, 1), lib.nn.Conv2d(1, 1, 1)),
        (modules.dropout._DropoutNd, lib.nn.Dropout2d(), lib.nn.ReLU()),
        (modules.pooling._MaxPoolNd, lib.nn.MaxPool2d(2), lib.nn.AvgPool2d(2)),
        (modules.loss._Loss, lib.nn.MSELoss(), lib.nn.ReLU()),
        (modules.loss._WeightedLoss, lib.nn.CrossEntropyLoss(), lib.nn.MSELoss()),
        (modules.rnn.RNNBase, lib.nn.GRU(1, 1), lib.nn.GRUCell(1, 1)),
    ):
        assert isinstance(inside, family) and not isinstance(outside, family)
        assert issubclass(type(inside), family) and not issubclass(type(outside), family)
    pairs = modules.utils
    assert pairs._pair(2) == (2, 2) and pairs._triple([1, 2, 3]) == (1, 2, 3)


def test_what_layers_have_beside(lib):
    assert lib.nn.LSTM(2, 3, bidirectional=True)._flat_weights_names[4:6] == [
        "weight_ih_l0_reverse", "weight_hh_l0_reverse",
    ]  # fmt: skip
    layer = lib.nn.Linear(2, 2)
    assert len(layer._forward_hooks) == len(layer._backward_hooks) == 0
    handle = layer.register_forward_hook(lambda *_: None)
    assert len(layer._forward_hooks) == 1 and len(lib.nn.Linear(2, 2)._forward_hooks) == 0
    handle.remove()
    assert len(layer._forward_hooks) == 0
    with pytest.raises(ValueError):
        lib.nn.BatchNorm2d(3)._check_input_dim(lib.ones(2, 3))
    assert lib.nn.init._calculate_fan_in_and_fan_out(lib.empty(2, 3, 5, 5)) == (75, 50)
    assert lib.nn.init._calculate_correct_fan(lib.empty(2, 3), "fan_out") == 2
    with pytest.raises(ValueError):
        lib.nn.init._calculate_fan_in_and_fan_out(lib.empty(2))


@pytest.mark.parametrize("mode", ["zeros", "circular", "reflect", "replicate"])
@pytest.mark.parametrize("padding", [2, "same", "valid"])
def test_conv_forward(mode, padding, lib):
    for dims in (1, 2):
        make = getattr(lib.nn, f"Conv{dims}d")
        layer = make(2, 4, 4, padding=padding, padding_mode=mode, groups=2, dilation=1)
        x = lib.arange(2 * 7.0**dims).sin().reshape(1, 2, *[7] * dims)
        got = layer._conv_forward(x, layer.weight, layer.bias)
        assert np.allclose(got.detach().numpy(), layer(x).detach().numpy(), atol=1e-6)
        doubled = layer._conv_forward(x, 2 * layer.weight, None)
        bias = layer.bias.detach().numpy().reshape(-1, *[1] * dims)
        expected = 2 * (got.detach().numpy() - bias)
        assert np.allclose(doubled.detach().numpy(), expected, atol=1e-5)


def test_annotations_of_classes_are_evaluated():
    """Libraries ask for the types of a module's attributes."""

    class Net(nn.Module):
        width: int

    assert typing.get_type_hints(Net)["width"] is int
    for path in ("nn", "optim", "optim.lr_scheduler", "distributions", "train", "models", "utils.data"):
        for name, value in vars(importlib.import_module(f"kiln.{path}")).items():
            if isinstance(value, type) and value.__module__.startswith("kiln"):
                assert isinstance(typing.get_type_hints(value), dict), name


def test_signature_of_a_module():
    class Net(nn.Module):
        def forward(self, x, scale=2.0):
            return x * scale

    assert list(inspect.signature(Net()).parameters) == ["x", "scale"]
    assert "bias" in inspect.signature(nn.Linear).parameters


def test_batched_gradients(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    w = lib.tensor([3.0, 4.0], requires_grad=True)
    y = x * x * w
    rows = lib.eye(2)
    dx, dw = lib.autograd.grad(y, (x, w), rows, is_grads_batched=True, retain_graph=True)
    assert dx.tolist() == [[6, 0], [0, 16]] and dw.tolist() == [[1, 0], [0, 4]]
    (again,) = lib.autograd.grad(y, x, lib.ones(2), only_inputs=True)
    assert again.tolist() == [6, 16]
    assert lib.autograd.Variable(lib.ones(2), requires_grad=True).requires_grad


def test_jit_marks_functions(lib):
    @lib.jit.ignore
    def f(x):
        return x + 1

    @lib.jit.unused
    def g(x):
        return x + 1

    assert f(1) == g(1) == 2 and not lib.jit.is_scripting() and not lib.jit.is_tracing()
    assert lib.jit.annotate(int, 3) == 3
    assert not isinstance(lib.nn.Linear(1, 1), lib.jit.ScriptModule)


def test_jit_has_no_files(tmp_path):
    net = nn.Linear(2, 1)
    assert kiln.jit.script(net) is net and kiln.jit.trace(net, kiln.ones(1, 2)) is net
    with pytest.raises(RuntimeError, match="kiln.capture"):
        kiln.jit.save(net, tmp_path / "net.pt")
    with pytest.raises(RuntimeError, match="kiln.onnx.load"):
        kiln.jit.load(tmp_path / "net.pt")


def test_other_devices_and_processes(lib):
    assert not lib.is_autocast_enabled("mps") and not lib.mps.is_available()
    assert not (lib.distributed.is_available() and lib.distributed.is_initialized())
    with pytest.raises((RuntimeError, ValueError)):
        lib.distributed.get_world_size()
    assert lib.multiprocessing.get_context("spawn") is not None


def test_accelerator(lib):
    found = lib.accelerator
    assert found.is_available() == lib.cuda.is_available()
    assert found.device_count() == lib.cuda.device_count()
    device = found.current_accelerator(check_available=True)
    with found.device_index(None):
        pass
    if found.is_available():
        assert device.type == "cuda" and found.current_device_index() == 0
        x = lib.ones(1 << 20, device=device)
        found.synchronize()
        assert found.max_memory_allocated() >= found.memory_allocated() >= x.numel() * 4
    else:
        assert device is None and lib.device(device or "cpu").type == "cpu"
        for name in ("current_device_index", "synchronize", "memory_allocated", "current_stream"):
            with pytest.raises(RuntimeError, match="accelerator"):
                getattr(found, name)()


@pytest.mark.parametrize("older", [
    ({"size_average": False}, "sum"),
    ({"size_average": True}, "mean"),
    ({"reduce": False}, "none"),
    ({"size_average": False, "reduce": False}, "none"),
    ({"size_average": False, "reduce": True}, "sum"),
])  # fmt: skip
def test_older_reductions(lib, older):
    words, reduction = older
    x, y = lib.tensor([[0.25, 0.5]]), lib.tensor([[0.75, 0.125]])
    F = lib.nn.functional
    for function in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.binary_cross_entropy, F.kl_div):
        with pytest.warns(UserWarning, match="size_average and reduce"):
            found = function(x, y, **words)
        assert found.tolist() == function(x, y, reduction=reduction).tolist()
    for name in ("MSELoss", "BCEWithLogitsLoss", "PoissonNLLLoss", "CrossEntropyLoss"):
        with pytest.warns(UserWarning, match="size_average and reduce"):
            made = getattr(lib.nn, name)(**words)
        assert made.reduction == reduction
    assert F.mse_loss(x, y, size_average=None).item() == F.mse_loss(x, y).item()

    class Loss(lib.nn.modules.loss._Loss):
        pass

    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert Loss(**words).reduction == reduction


def test_names_without_their_underscore(lib):
    for name in """constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform
        xavier_normal xavier_uniform""".split():
        x = lib.full((2, 2, 1) if name == "dirac" else (2, 2), float("nan"))
        args = {"constant": (3.0,), "sparse": (0.5,)}.get(name, ())
        with pytest.warns(FutureWarning, match=f"in favor of `nn.init.{name}_`"):
            assert getattr(lib.nn.init, name)(x, *args) is x
        assert not x.isnan().any()
    w = lib.ones(1, requires_grad=True)
    (3 * w).backward()
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        assert lib.nn.utils.clip_grad_norm([w], 1.0) == 3
    assert w.grad.item() == pytest.approx(1, abs=1e-5)


def test_small_names(lib):
    assert not lib.nn.parameter.is_lazy(lib.nn.Linear(1, 1).weight)
    assert lib.nn.parameter.is_lazy(lib.nn.LazyLinear(1).weight)
    allowed = importlib.import_module(f"{lib.__name__}.serialization")
    with allowed.safe_globals([dict]):
        assert dict in allowed.get_safe_globals()
    assert dict not in allowed.get_safe_globals()


def test_helpers_of_distributions(lib):
    utils = importlib.import_module(f"{lib.__name__}.distributions.utils")
    assert utils._sum_rightmost(lib.ones(2, 3, 4), 2).tolist() == [12, 12]
    x = utils._standard_normal(lib.Size([400, 50]), dtype=lib.float64, device=lib.device("cpu"))
    assert x.dtype == lib.float64 and x.shape == (400, 50)
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05
    assert isinstance(lib.__config__.show(), str)


def test_sdp_kernel():
    with kiln.backends.cuda.sdp_kernel(enable_flash=False):
        assert not kiln.backends.cuda.flash_sdp_enabled() and kiln.backends.cuda.math_sdp_enabled()
    assert kiln.backends.cuda.flash_sdp_enabled()


def _write(i, folder, value):
    if value == i:
        raise KeyError("number of a process that fails")
    (folder / str(i)).write_text(str(value))


def test_spawn(tmp_path):
    kiln.multiprocessing.spawn(_write, (tmp_path, 7), nprocs=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(RuntimeError, match="(?s)process 1 failed.*number of a process that fails"):
        kiln.multiprocessing.spawn(_write, (tmp_path, 1), nprocs=2)


def test_older_hooks_of_state_dicts(lib):
    layer, seen = lib.nn.Linear(1, 1), []
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append((prefix, len(rest))))
    layer._register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module), with_module=True)
    layer._register_state_dict_hook(lambda module, state, prefix, data: seen.append(sorted(state)))
    layer.load_state_dict(layer.state_dict())
    assert seen == [["bias", "weight"], ("", 5), layer]


def test_hub(tmp_path, monkeypatch):
    served = tmp_path / "served"
    served.mkdir()
    kiln.save({"w": kiln.arange(3.0)}, served / "net.pt")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(served))

        def log_message(self, *args):
            asked.append(args)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url = f"http://127.0.0.1:{server.server_port}/net.pt"
    try:
        kiln.hub.set_dir(tmp_path / "hub")
        for _ in range(2):
            state = kiln.hub.load_state_dict_from_url(url, progress=False)
            assert state["w"].tolist() == [0, 1, 2]
        assert len(asked) == 1  # the second time it is on disk
        assert [p.name for p in (tmp_path / "hub" / "checkpoints").iterdir()] == ["net.pt"]
        with pytest.raises(kiln.errors.IoError, match="SHA-256"):
            kiln.hub.load_state_dict_from_url(
                url, check_hash=True, file_name="net-00000000.pt", progress=False
            )
        with pytest.raises(OSError):
            kiln.hub.load_state_dict_from_url(url + ".none", progress=False)
        assert [p.name for p in (tmp_path / "hub" / "checkpoints").iterdir()] == ["net.pt"]
    finally:
        kiln.hub.set_dir(None)
        server.shutdown()


def test_assert_close(lib):
    close = lib.testing.assert_close
    close(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 2.000001]))
    close({"a": [1, 2.0]}, {"a": [1, 2.0]})
    close(lib.tensor([float("nan")]), lib.tensor([float("nan")]), equal_nan=True)
    close(lib.ones(2), lib.ones(2, dtype=lib.float64), check_dtype=False)
    close(1.0, 1.1, rtol=0.1, atol=0.1)
    for actual, expected in (
        (lib.tensor([1.0]), lib.tensor([1.001])),
        (lib.tensor([1]), lib.tensor([2])),
        (lib.ones(2), lib.ones(3)),
        (lib.ones(2), lib.ones(2, dtype=lib.float64)),
        (lib.tensor([float("nan")]), lib.tensor([float("nan")])),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        ([lib.ones(1)], [lib.zeros(1)]),
        (True, False),
    ):
        with pytest.raises(AssertionError):
            close(actual, expected)
    with pytest.raises(AssertionError, match="mine"):
        close(lib.ones(1), lib.zeros(1), msg="mine")


def test_assert_close_says_where():
    with pytest.raises(AssertionError) as caught:
        kiln.testing.assert_close({"w": [kiln.ones(2, 2)]}, {"w": [kiln.tensor([[1.0, 1.0], [3.0, 1.0]])]})
    assert str(caught.value).startswith("at ['w'][0]: 1 of 4 elements differ (25.0 %)")
    assert "absolute difference is 2 at index (1, 0)" in str(caught.value)
    with pytest.raises(ValueError, match="both rtol and atol"):
        kiln.testing.assert_close(1, 1, rtol=0.1)


def test_compiler_and_attention(lib):
    assert lib.compiler.disable(abs)(-1) == 1
    with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
        q = lib.ones(1, 1, 2, 4)
        assert lib.nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape
    lib._assert(True, "")
    with pytest.raises(AssertionError, match="not so"):
        lib._assert(False, "not so")


def test_layers_that_derive_from_the_families(lib):
    modules = lib.nn.modules

    class Charbonnier(modules.loss._Loss):
        def __init__(self, eps=1e-3, reduction="mean"):
            super().__init__(reduction=reduction)
            self.eps = eps

        def forward(self, x, y):
            loss = ((x - y) ** 2 + self.eps**2).sqrt()
            return loss.mean() if self.reduction == "mean" else loss.sum()

    loss = Charbonnier(eps=0.0, reduction="sum")
    assert loss(lib.ones(2), lib.zeros(2)).item() == 2
    assert isinstance(loss, modules.loss._Loss) and issubclass(Charbonnier, modules.loss._Loss)
    assert not isinstance(lib.nn.MSELoss(), Charbonnier)

    class Weighted(modules.loss._WeightedLoss):
        def forward(self, x):
            return (x * self.weight).sum()

    weighted = Weighted(lib.full((2,), 3.0))
    assert weighted(lib.ones(2)).item() == 6 and list(weighted.state_dict()) == ["weight"]

    class Norm(modules.batchnorm._BatchNorm):
        def _check_input_dim(self, x):
            assert x.dim() == 5

    norm, x = Norm(3, momentum=None), lib.arange(24.0).reshape(2, 3, 2, 1, 2)
    usual = lib.nn.BatchNorm3d(3, momentum=None)
    for _ in range(2):
        assert lib.allclose(norm(x), usual(x))
    assert lib.allclose(norm.eval()(x), usual.eval()(x))
    assert list(norm.state_dict()) == list(usual.state_dict())

    class Mine(lib.nn.BatchNorm2d):
        def forward(self, x):
            self._check_input_dim(x)
            return super().forward(x)

    assert Mine(3)(lib.ones(2, 3, 2, 2)).shape == (2, 3, 2, 2)
    with pytest.raises(ValueError):
        Mine(3)(lib.ones(2, 3))
    with pytest.raises(ValueError):
        lib.nn.InstanceNorm2d(3)._check_input_dim(lib.ones(2, 3))


def test_results_that_programs_go_on_with(lib):
    # Of attention with the sequence first: in a row.
    x = lib.ones(4, 2, 8)
    assert lib.nn.MultiheadAttention(8, 2)(x, x, x)[0].view(-1, 8).shape == (8, 8)
    for anything in (None, (1, "two")):
        assert lib.nn.Identity()(anything) is anything
    # Truncated backpropagation through time.
    hidden = lib.nn.RNNCell(2, 2)(lib.ones(1, 2), lib.zeros(1, 2))
    assert not hidden.detach_().requires_grad
    # Written to where the gradient does not need the result.
    y = lib.nn.functional.prelu(lib.ones(2, requires_grad=True) * -1, lib.ones(1) * 0.25)
    y += 1
    y.sum().backward()
    zero = lib.zeros(2, requires_grad=True)
    lib.atan2(zero, lib.zeros(2)).sum().backward()
    assert zero.grad.tolist() == [0, 0]


# ---- What classes that derive from PyTorch's use beside what is documented


def test_options_of_layers_by_name():
    from layer_cases import CASES

    seen = 0
    for name, (constructors, *_) in CASES.items():
        args, given = constructors[0]
        layer = getattr(nn, name)(*args, **given)
        for option in getattr(layer, "__constants__", ()):
            seen += 1
            assert hasattr(layer, option), (name, option)
    assert seen > 200
    assert nn.Linear.__constants__ == ["in_features", "out_features"]
    assert nn.TransformerEncoderLayer.__constants__ == ["norm_first"]
    assert nn.Module.dump_patches is False


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_options_of_layers_are_pytorchs():
    import torch

    for name in nn.__all__:
        mine, theirs = getattr(nn, name), getattr(torch.nn, name, None)
        if theirs is not None and isinstance(mine, type) and issubclass(mine, nn.Module):
            expected = getattr(theirs, "__constants__", None)
            assert getattr(mine, "__constants__", None) == expected, name


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_paddings_of_convolutions(dims, lib):
    kernel = (3, 4, 5)[:dims]
    convolution = getattr(lib.nn, f"Conv{dims}d")

    def sides(**options):
        return list(convolution(1, 1, kernel, **options)._reversed_padding_repeated_twice)

    assert sides(padding=(1, 2, 3)[:dims]) == [3, 3, 2, 2, 1, 1][6 - 2 * dims :]
    assert sides(padding="same", dilation=1) == [2, 2, 1, 2, 1, 1][6 - 2 * dims :]
    assert sides(padding="valid") == [0] * (2 * dims)
    transposed = getattr(lib.nn, f"ConvTranspose{dims}d")(2, 3, 3, stride=2, padding=1)
    x = lib.ones(1, 2, *[5] * dims)
    given = (transposed.stride, transposed.padding, transposed.kernel_size, dims)
    assert list(transposed._output_padding(x, [10] * dims, *given)) == [1] * dims
    assert list(transposed._output_padding(x, [1, 3, *[9] * dims], *given)) == [0] * dims
    assert list(transposed._output_padding(x, None, *given)) == [0] * dims
    with pytest.raises(ValueError, match="valid sizes range"):
        transposed._output_padding(x, [11] * dims, *given)
    with pytest.raises(ValueError, match="elements"):
        transposed._output_padding(x, [10] * 7, *given)


def test_what_recurrent_layers_tables_and_upsampling_have_beside(lib):
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert lib.nn.LSTM(2, 3, proj_size=2)._all_weights == [names]
    both = lib.nn.GRU(2, 3, bias=False, bidirectional=True)._all_weights
    assert both == [names[:2], [f"{name}_reverse" for name in names[:2]]]
    for kind in (lib.nn.Embedding, lib.nn.EmbeddingBag):
        table = kind(3, 2, padding_idx=1)
        with lib.no_grad():
            table.weight.fill_(7)
        table._fill_padding_idx_with_zero()
        assert table.weight.tolist() == [[7, 7], [0, 0], [7, 7]]
    assert lib.nn.Upsample(scale_factor=2).name == "Upsample"


def test_older_names_of_reductions(lib):
    reduction = lib.nn.functional._Reduction
    assert reduction is lib.nn._reduction
    assert [reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value"):
        reduction.get_enum("all")
    with pytest.warns(UserWarning, match="deprecated"):
        assert reduction.get_enum("elementwise_mean") == 1
    for given, expected in (
        ((None, None), "mean"), ((False, None), "sum"), ((False, True), "sum"),
        ((None, False), "none"), ((True, False), "none"),
    ):  # fmt: skip
        assert reduction.legacy_get_string(*given, emit_warning=False) == expected
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert reduction.legacy_get_enum(False, None) == 2
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        found = [lib.nn.functional._get_softmax_dim("softmax", n, 3) for n in range(5)]
    assert found == [0, 0, 1, 0, 1]


def test_checks_of_libraries(lib):
    def message():
        return "mine"

    for name, error in (
        ("_check", RuntimeError), ("_check_index", IndexError), ("_check_value", ValueError),
        ("_check_type", TypeError), ("_check_not_implemented", NotImplementedError),
    ):  # fmt: skip
        getattr(lib, name)(True, message)
        with pytest.raises(error, match="mine"):
            getattr(lib, name)(False, message)
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        lib._check(False)
    lib._check_tensor_all(lib.ones(2) > 0)
    with pytest.raises(RuntimeError, match="mine"):
        lib._check_tensor_all(lib.ones(2) > 1, message)
    assert lib._shape_as_tensor(lib.ones(2, 3)).tolist() == [2, 3]
    c = lib.full((500, 3), 2.0, requires_grad=True)
    draws = lib._standard_gamma(c)
    assert 1.8 < draws.mean() < 2.2
    draws.sum().backward()
    assert c.grad.gt(0).all()
    shares = lib._sample_dirichlet(c.detach())
    assert shares.dtype == c.dtype and lib.allclose(shares.sum(-1), lib.ones(500))
    assert lib._C._log_api_usage_once("mine") is None and lib._C._get_tracing_state() is None
    assert lib.hub.get_dir().startswith(lib.hub._get_torch_home())
    assert importlib.import_module(f"{lib.__name__}._tensor").Tensor is lib.Tensor
    assert lib.jit._script_if_tracing(abs)(-1) == 1
    assert lib.compiler.cudagraph_mark_step_begin() is None


def test_batch_norms_without_running_statistics(lib):
    net = lib.nn.Sequential(lib.nn.Conv2d(1, 2, 1), lib.nn.BatchNorm2d(2))
    assert lib.func.replace_all_batch_norm_modules_(net) is net
    norm = net[1].eval()
    assert norm.running_mean is None and norm.num_batches_tracked is None
    assert not norm.track_running_stats and list(norm.buffers()) == []
    y = norm(lib.randn(4, 2, 3, 3) * 5 + 7)
    assert abs(y.mean().item()) < 1e-5 and abs(y.std().item() - 1) < 0.1
    norm = lib.nn.BatchNorm1d(2)
    x = lib.randn(3, 4, 2)
    y = lib.func.vmap(lib.func.replace_all_batch_norm_modules_(norm))(x)
    assert lib.allclose(y[1], norm(x[1]), atol=1e-6)


DTYPES = """bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64
    complex128""".split()


@pytest.mark.parametrize("name", DTYPES)
def test_make_tensor(name, lib):
    dtype = getattr(lib, name)

    def made(*shape, **options):
        x = lib.testing.make_tensor(*shape, dtype=dtype, device="cpu", **options)
        parts = lib.view_as_real(x) if x.is_complex() else x
        return x, parts.double().min().item(), parts.double().max().item()

    x, low, high = made((50, 40))
    assert x.dtype == dtype and x.shape == (50, 40) and x.is_contiguous()
    usual = (0, 1) if name == "bool" else (0, 9) if name == "uint8" else (-9, 9)
    assert usual[0] <= low <= usual[0] + 0.1 and usual[1] - 0.1 <= high <= usual[1]
    x, low, high = made(5, 4, noncontiguous=True, low=1)
    assert x.shape == (5, 4) and not x.is_contiguous() and low >= 1
    if name != "bool":
        x, low, high = made(500, low=2, high=5)
        assert 2 <= low < high <= 5
    assert not (made(2000, exclude_zero=True)[0] == 0).any()
    for options in ({"low": 5, "high": 2}, {"low": float("nan")}):
        with pytest.raises(ValueError, match="low"):
            made(3, **options)
    if dtype.is_floating_point or dtype.is_complex:
        assert made(3, requires_grad=True)[0].requires_grad
    else:
        with pytest.raises(ValueError, match="requires_grad"):
            made(3, requires_grad=True)
        with pytest.raises(ValueError, match="only supports"):
            made(3, low=1e30, high=1e31)
    shape = (1, 2, 3, 4)
    x, *_ = made(shape, memory_format=lib.channels_last)
    assert x.is_contiguous(memory_format=lib.channels_last)
    with pytest.raises(ValueError, match="mutually exclusive"):
        made(shape, memory_format=lib.channels_last, noncontiguous=True)


def test_lbfgs_as_one_vector(lib):
    a, b = lib.nn.Parameter(lib.ones(2, 3)), lib.nn.Parameter(lib.ones(4))
    optimizer = lib.optim.LBFGS([a, b])
    assert [p is q for p, q in zip(optimizer._params, (a, b))] == [True, True]
    assert optimizer._numel() == 10
    (a * 2).sum().backward()
    assert optimizer._gather_flat_grad().tolist() == [2.0] * 6 + [0.0] * 4
    with lib.no_grad():
        before = optimizer._clone_param()
        optimizer._add_grad(2.0, lib.arange(10.0))
        assert b.tolist() == [13, 15, 17, 19]
        optimizer._set_param(before)
    assert b.tolist() == [1, 1, 1, 1]

    def closure():
        optimizer.zero_grad()
        with lib.enable_grad():
            loss = (a**2).sum()
        loss.backward()
        return loss

    with lib.no_grad():
        direction = lib.full((10,), -1.0)
        loss, slope = optimizer._directional_evaluate(closure, before, 0.5, direction)
    assert loss == pytest.approx(1.5) and slope.tolist() == [1.0] * 6 + [0.0] * 4
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_results_of_several_parts_print_a_part_on_each_line(lib):
    x = lib.arange(6.0).reshape(2, 3)
    name = f"{lib.__name__}.return_types"
    found = x.max(0)
    assert repr(found) == str(found) == (
        f"{name}.max(\nvalues=tensor([3., 4., 5.]),\nindices=tensor([1, 1, 1]))"
    )
    assert repr(lib.linalg.slogdet(lib.eye(2))) == (
        f"{name}.linalg_slogdet(\nsign=tensor(1.),\nlogabsdet=tensor(0.))"
    )
    values = "tensor([[2., 1.],\n        [5., 4.]])"
    indices = "tensor([[2, 1],\n        [2, 1]])"
    assert repr(x.topk(2)) == f"{name}.topk(\nvalues={values},\nindices={indices})"
    assert isinstance(found, lib.return_types.max) and not isinstance(found, lib.return_types.min)
    assert type(pickle.loads(pickle.dumps(found))) is lib.return_types.max
    counted = lib.histogramdd(x, bins=[1, 1, 1])
    assert type(counted).__name__ == "histogramdd" and repr(counted).startswith(f"{name}.histogramdd(\n")


def test_names_of_a_tracer(lib):
    """Decorators of torch._dynamo give the function, and its settings can be set."""
    import importlib

    dynamo = importlib.import_module(f"{lib.__name__}._dynamo")
    disabled = dynamo.disable(lambda x: x + 1)
    assert disabled(lib.ones(1)).item() == 2
    assert dynamo.allow_in_graph(abs)(-1) == 1 and not dynamo.is_compiling()
    dynamo.config.cache_size_limit = 8
    assert dynamo.config.cache_size_limit == 8
    dynamo.mark_dynamic(lib.ones(2), 0)
    dynamo.reset()
