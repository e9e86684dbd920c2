"""Each row of kiln/nn/layers.def: the Python class is the C++ class."""

import copy
import inspect
import pathlib
import pickle
import threading

import pytest

import kiln
from conftest import HAS_TORCH
from kiln import _C, nn
from layer_cases import CASES, x2, x4

ROWS = {row["name"]: row for row in _C._layers()}


EACH = [
    pytest.param(name, args, kwargs, id=f"{name}-{i}")
    for name, (legal, _, _) in CASES.items()
    for i, (args, kwargs) in enumerate(legal)
]
REFUSED = [
    pytest.param(name, args, kwargs, id=f"{name}-{i}")
    for name, (_, _, refused) in CASES.items()
    for i, (args, kwargs) in enumerate(refused)
]


def pair(name, args, kwargs):
    """The Python layer and the C++ layer, made from the same seed."""
    kiln.manual_seed(7)
    mine = getattr(nn, name)(*args, **kwargs)
    kiln.manual_seed(7)
    handle = _C._cpp_layer(name, *args, **kwargs)
    return mine, nn.CppModule(handle)


def call(layer, inputs):
    kiln.manual_seed(3)
    if isinstance(layer, nn.CppModule):
        return _C._call_cpp_layer(layer._handle, *inputs)
    return layer(*inputs)


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a.dtype is b.dtype and kiln.equal(a, b)


def error_of(f):
    with pytest.raises(Exception) as caught:
        f()
    return type(caught.value), str(caught.value)


def test_every_row_has_a_case():
    assert set(CASES) == set(ROWS)
    for name, row in ROWS.items():
        cls = getattr(nn, name)
        assert cls.__mro__[1] is nn.Module and cls.__module__ == f"kiln.nn.modules.{row['home']}"
        assert cls.__doc__ and cls.__qualname__ == name


@pytest.mark.parametrize("name,args,kwargs", EACH)
def test_both_classes_are_one(name, args, kwargs):
    mine, theirs = pair(name, args, kwargs)
    assert repr(mine) == repr(theirs)
    state, expected = mine.state_dict(), theirs.state_dict()
    assert list(state) == list(expected)
    assert all(same(state[key], expected[key]) for key in state)
    assert state._metadata[""]["version"] == mine._version == theirs._handle.state_version()
    for mode in (True, False):
        mine.train(mode)
        theirs.train(mode)
        assert same(call(mine, CASES[name][1]()), call(theirs, CASES[name][1]()))
    # What forward did to buffers.
    assert all(same(mine.state_dict()[key], theirs.state_dict()[key]) for key in state)


@pytest.mark.parametrize("name,args,kwargs", EACH)
def test_gradients(name, args, kwargs):
    mine, theirs = pair(name, args, kwargs)
    for layer in (mine, theirs):
        out = call(layer, CASES[name][1]())
        out = out[0] if isinstance(out, tuple) else out
        if out.requires_grad:
            out.square().sum().backward()
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    for p, q in zip(mine.parameters(), theirs.parameters()):
        assert same(p.grad, q.grad)


@pytest.mark.parametrize("name,args,kwargs", REFUSED)
def test_both_refuse_alike(name, args, kwargs):
    kind, text = error_of(lambda: getattr(nn, name)(*args, **kwargs))
    assert (kind, text) == error_of(lambda: _C._cpp_layer(name, *args, **kwargs))
    assert issubclass(kind, (ValueError, TypeError, NotImplementedError)) and name in text or "padding" in text


@pytest.mark.parametrize("name,args,kwargs", EACH)
def test_wrong_inputs_are_refused_alike(name, args, kwargs):
    mine, theirs = pair(name, args, kwargs)
    with pytest.raises(TypeError, match="argument"):
        mine()
    for wrong in (3, None, "x"):
        if name == "Identity":  # hands on whatever it is given
            assert mine(wrong) is wrong
            continue
        with pytest.raises(TypeError):
            mine(*[wrong] * len(CASES[name][1]()))
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        mine(*CASES[name][1](), nothing=1)


@pytest.mark.parametrize("name,args,kwargs", EACH)
def test_copies(name, args, kwargs):
    layer, _ = pair(name, args, kwargs)
    layer.note = "mine"
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer) and repr(other) == repr(layer) and other.note == "mine"
        assert same(call(other.eval(), CASES[name][1]()), call(copy.deepcopy(layer).eval(), CASES[name][1]()))
        for p, q in zip(layer.parameters(), other.parameters()):
            assert p is not q and p.data_ptr() != q.data_ptr()


@pytest.mark.parametrize("name", sorted(ROWS))
def test_signatures(name):
    cls, row = getattr(nn, name), ROWS[name]
    signature = inspect.signature(cls.__init__)
    if not row["takes_anything"]:
        names = [option for option, *_ in row["options"]]
        assert set(names) <= set(signature.parameters)
        assert ("device" in signature.parameters) == row["has_parameters"]
    arguments = list(inspect.signature(cls.forward).parameters)
    words = [w.partition("=")[0] for w in row["forward"].split(", ") if w != "*"]
    assert arguments == ["self", *words]
    if HAS_TORCH and hasattr(__import__("torch").nn, name):
        import torch

        theirs = inspect.signature(getattr(torch.nn, name).forward).parameters
        assert arguments[: len(theirs)] == list(theirs)


def test_the_stub_has_every_row():
    text = (pathlib.Path(kiln.__file__).parent / "nn" / "layers.pyi").read_text()
    compile(text, "layers.pyi", "exec")
    for name in ROWS:
        assert f"class {name}(Module):" in text
    assert "bias: bool\n" not in text
    assert "in_features: int, out_features: int, bias: bool = True, device:" in text


# ---- What a user of a Python layer may do to it


def test_options_are_attributes():
    x = x4()
    conv = nn.Conv2d(4, 2, 3)
    conv.stride = 2
    assert conv(x).shape == (2, 2, 2, 2) and "stride=(2, 2)" in repr(conv)
    conv.padding, conv.stride = "same", (1, 1)
    assert conv(x).shape == x.shape[:1] + (2, 6, 6)
    dropout = nn.Dropout(0.0)
    dropout.p = 1.0
    assert dropout(x).abs().sum() == 0 and repr(dropout) == "Dropout(p=1.0, inplace=False)"
    bn = nn.BatchNorm2d(4)
    bn.momentum = 1.0
    bn(x)
    assert kiln.allclose(bn.running_mean, x.mean((0, 2, 3)))
    bn.momentum = None
    assert "momentum=None" in repr(bn)
    bn.track_running_stats = False
    before = bn.running_mean.clone()
    bn(x + 1)
    assert kiln.equal(bn.running_mean, before)
    norm = nn.LayerNorm(4)
    norm.eps = 1e6
    assert norm(x2()).abs().max() < 0.1
    sizes = [2, 2]
    pool = nn.MaxPool2d(2)
    pool.kernel_size = sizes
    assert pool(x).shape == (2, 4, 3, 3)
    sizes[:] = [3, 3]  # a list may change without a word
    assert pool(x).shape[2:] == (2, 2)
    del conv.stride
    with pytest.raises(AttributeError, match="stride"):
        conv(x)
    conv.stride = "two"
    with pytest.raises(TypeError, match="Conv2d: stride"):
        conv(x)


def test_an_option_may_be_a_property():
    class Mine(nn.Dropout):
        @property
        def p(self):
            return 1.0

        @p.setter
        def p(self, value):
            pass

    assert Mine(0.5)(x2()).abs().sum() == 0
    layer = nn.Linear(4, 3)
    layer(x2())

    class Changed(nn.Linear):
        pass

    layer.__class__ = Changed
    ones = kiln.ones(3, 4)
    layer(x2())
    Changed.weight = property(lambda self: ones)  # as PyTorch's parametrizations do
    assert kiln.equal(layer(x2()), x2() @ ones.T + layer.bias)
    del Changed.weight
    assert kiln.equal(layer(x2()), nn.functional.linear(x2(), layer.weight, layer.bias))
    layer.__dict__["weight"] = ones  # as functional_call does
    assert kiln.equal(layer(x2()), x2() @ ones.T + layer.bias)


def test_parts_are_the_modules_own():
    layer = nn.Linear(4, 3)
    weight = layer.weight
    assert isinstance(weight, nn.Parameter) and layer.half() is layer and layer.weight is weight
    layer.float()
    x = x2()
    layer.weight = nn.Parameter(kiln.ones(3, 4))
    layer.bias = None
    assert kiln.equal(layer(x), x @ kiln.ones(4, 3)) and repr(layer).endswith("bias=False)")
    # A plain tensor in a parameter's place, as parametrizations have it.
    base = kiln.full((3, 4), 2.0, requires_grad=True)
    del layer.weight
    layer.weight = base * 2
    layer(x).sum().backward()
    assert kiln.allclose(base.grad, (x.sum(0) * 2).expand(3, 4))
    del layer.weight
    with pytest.raises(AttributeError, match="weight"):
        layer(x)
    layer.weight = nn.Param.uninitialized(
        nn.ParamId(), lambda device, grad: kiln.full((3, 4), 3.0), shape=(3, 4)
    )
    assert kiln.equal(layer(x), x @ kiln.full((4, 3), 3.0))


def test_a_layer_holds_no_tensor_between_calls():
    import weakref

    layer = nn.Linear(4, 3)
    layer(x2())
    old = weakref.ref(layer.weight)
    storage = layer.weight.data_ptr()
    layer.weight = nn.Parameter(kiln.zeros(3, 4))
    assert old() is None and storage != layer.weight.data_ptr()


def test_subclasses():
    class Mine(nn.Linear):
        def reset_parameters(self):
            self.drawn = kiln.random.initial_seed()
            with kiln.no_grad():
                self.weight.fill_(1.0)
                self.bias.zero_()

        def extra_repr(self):
            return "mine, " + super().extra_repr()

        def forward(self, input, twice=False):
            return super().forward(input) * (2 if twice else 1)

    layer = Mine(4, 3)
    x = x2()
    assert layer.drawn is not None and kiln.equal(layer(x), x @ kiln.ones(4, 3))
    assert kiln.equal(layer(x, twice=True), x @ kiln.ones(4, 3) * 2)
    assert repr(layer) == "Mine(mine, in_features=4, out_features=3, bias=True)"
    assert isinstance(layer, nn.Linear) and isinstance(layer, nn.Module)
    again = pickle.loads(pickle.dumps(nn.Linear(4, 3)))
    nn.Linear.reset_parameters(layer)
    assert not kiln.equal(layer.weight, kiln.ones(3, 4)) and again.weight.shape == (3, 4)
    seen = []
    layer.register_forward_hook(lambda m, args, out: seen.append(out.shape))
    layer(x)
    assert seen == [(3, 3)]
    with pytest.raises(TypeError):
        nn.Linear.forward(nn.ReLU(), x)


def test_a_class_may_derive_from_two_layers():
    class Both(nn.Linear, nn.ReLU):
        def forward(self, input):
            return nn.ReLU.forward(self, nn.Linear.forward(self, input))

    layer = Both(4, 3)
    x = x2()
    for one in (layer, copy.deepcopy(layer)):
        assert kiln.equal(one(x), nn.functional.linear(x, layer.weight, layer.bias).relu())
    layer.inplace = True
    assert nn.ReLU.extra_repr(layer) == "inplace=True" and layer.extra_repr().startswith("in_f")


def test_initial_values_without_drawing():
    kiln.manual_seed(1)
    nn.Linear(4, 3)
    after = kiln.rand(1)
    kiln.manual_seed(1)
    nn.init.kaiming_uniform_(kiln.empty(3, 4), a=5**0.5)
    nn.init.uniform_(kiln.empty(3), -0.5, 0.5)
    assert kiln.equal(after, kiln.rand(1))


def test_constructors_say_what_python_says():
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'out_features'"):
        nn.Linear(3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.ReLU(size=3)
    with pytest.raises(TypeError, match="Linear: in_features"):
        nn.Linear("3", 4)
    assert nn.Linear(in_features=2, out_features=1, dtype=kiln.float64).weight.dtype is kiln.float64


def test_fused_call_of_linear():
    layer, x = nn.Linear(4, 4), x2()
    expected = nn.functional.gelu(layer(x)) + x
    assert kiln.allclose(layer(x, activation="gelu", residual=x), expected, atol=1e-6)
    with pytest.raises(ValueError, match="unknown activation"):
        layer(x, activation="no")


def test_a_layer_that_module_init_passed_by():
    class Mixin(nn.Module):
        def __init__(self):
            object.__init__(self)

    class Wrong(nn.Linear, Mixin):
        pass

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Wrong(2, 2)


def test_old_state_dicts_may_lack_what_was_not_there():
    bn = nn.BatchNorm2d(2)
    bn(kiln.rand(1, 2, 2, 2))
    state = bn.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        bn.load_state_dict(state)
    state._metadata[""]["version"] = 1
    bn.load_state_dict(state)
    del state._metadata
    bn.load_state_dict(state)


def test_threads_call_one_layer():
    layer = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()).eval()
    x = kiln.rand(4, 8, 32, 32)
    expected = layer(x)
    wrong = []

    def run():
        for _ in range(20):
            if not kiln.equal(layer(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_layer_within_its_own_call():
    layer = nn.Linear(2, 2)
    calls = []

    def hook(module, args, output):
        calls.append(output)
        if len(calls) < 3:
            module(args[0])

    layer.register_forward_hook(hook)
    layer(kiln.ones(1, 2))
    assert len(calls) == 3 and kiln.equal(calls[0], calls[2])
