"""Module: construction, registration, attributes, traversal, paths, training state, printing.

Each test runs on Kiln and, where it is installed, on PyTorch: what it claims is PyTorch's contract.
"""

import abc
import copy
import pickle

import pytest

import kiln
from kiln import nn


def names(pairs):
    return [name for name, _ in pairs]


def make_net(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = lib.nn.Linear(3, 4)
            self.act = lib.nn.ReLU()
            self.fc2 = lib.nn.Linear(4, 2, bias=False)
            self.scale = lib.nn.Parameter(lib.ones(1))
            self.register_buffer("count", lib.zeros(1))

        def forward(self, x, *, twice=False):
            y = self.fc2(self.act(self.fc1(x))) * self.scale
            return y * 2 if twice else y

    return Net()


class Picklable(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.tied = self.fc
        self.act = kiln.nn.functional.gelu
        self.register_buffer("b", kiln.ones(1), persistent=False)
        self.register_forward_hook(double)

    def forward(self, x):
        return self.act(self.fc(x))


def double(module, args, output):
    return output * 2


# ---- Construction


def test_init_takes_no_arguments(lib):
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        lib.nn.Tanh(k=1)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        lib.nn.Tanh(1)
    with pytest.raises(TypeError):
        lib.nn.Sigmoid(1, 2)


def test_call_super_init_passes_arguments_on(lib):
    class Base:
        def __init__(self, value):
            self.value = value

    class Mixed(lib.nn.Module, Base):
        call_super_init = True

        def __init__(self, value):
            super().__init__(value=value)

    assert Mixed(5).value == 5


def test_mixins_and_metaclasses(lib):
    class Interface(abc.ABC):
        @abc.abstractmethod
        def size(self): ...

    class Mixin:
        def hello(self):
            return "hello"

    class Both(lib.nn.Module, Mixin, Interface):
        def size(self):
            return 1

    assert Both().hello() == "hello" and isinstance(Both(), Interface)


def test_assignment_before_init_is_an_error(lib):
    class Early(lib.nn.Module):
        def __init__(self, value):
            self.part = value

    for value in (lib.nn.Parameter(lib.ones(1)), lib.nn.ReLU()):
        with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
            Early(value)

    class EarlyBuffer(lib.nn.Module):
        def __init__(self):
            self.register_buffer("b", lib.ones(1))

    with pytest.raises(AttributeError):
        EarlyBuffer()


def test_forward_is_called_with_any_arguments(lib):
    net = make_net(lib)
    x = lib.ones(1, 3)
    assert lib.equal(net(x, twice=True), net(x) * 2) and lib.equal(net(x), net.forward(x))
    with pytest.raises(NotImplementedError, match="forward"):
        lib.nn.Module()(x)
    with pytest.raises(TypeError):
        net()
    # forward may be set on the instance too
    net.forward = lambda y: y + 1
    assert lib.equal(net(x), x + 1)


# ---- Registration


@pytest.mark.parametrize("kind", ["add_module", "register_module", "register_buffer", "register_parameter"])
def test_names_are_checked(lib, kind):
    net = make_net(lib)
    value = {
        "add_module": lib.nn.ReLU(),
        "register_module": lib.nn.ReLU(),
        "register_buffer": lib.ones(1),
        "register_parameter": lib.nn.Parameter(lib.ones(1)),
    }[kind]
    register = getattr(net, kind)
    with pytest.raises(TypeError):
        register(1, value)
    with pytest.raises(TypeError):
        register("new", "no such thing")
    for name in ("a.b", "", "forward"):
        with pytest.raises(KeyError):
            register(name, value)
    register("new", value)
    assert net.new is value
    register("none", None)
    assert net.none is None


def test_add_module_is_an_attribute(lib):
    net = make_net(lib)
    child = lib.nn.Tanh()
    net.add_module("extra", child)
    assert net.extra is child and "extra" in net._modules
    with pytest.raises(KeyError):
        net.add_module("scale", child)


def test_register_buffer_persistence(lib):
    net = lib.nn.Module()
    net.register_buffer("a", lib.ones(1))
    net.register_buffer("b", lib.ones(1), persistent=False)
    net.register_buffer("c", None)
    assert list(net.state_dict()) == ["a"] and names(net.named_buffers()) == ["a", "b"]
    net.register_buffer("b", lib.ones(1))
    net.register_buffer("a", lib.ones(1), persistent=False)
    assert list(net.state_dict()) == ["b"] and net._non_persistent_buffers_set == {"a"}


def test_register_parameter_refuses_results_of_ops(lib):
    net = lib.nn.Module()
    p = lib.nn.Parameter(lib.ones(1))
    with pytest.raises(TypeError):
        net.register_parameter("p", lib.ones(1))
    with pytest.raises((ValueError, TypeError)):
        net.register_parameter("p", p * 2)
    net.register_parameter("p", p)
    assert net.p is p and list(net.parameters()) == [p]


# ---- Attributes


def test_attributes_register_and_replace(lib):
    net = make_net(lib)
    assert net.fc1 is net._modules["fc1"] and net.scale is net._parameters["scale"]
    new = lib.nn.Parameter(lib.zeros(1))
    net.scale = new
    assert net.scale is new
    net.scale = None
    assert net.scale is None and "scale" in net._parameters
    with pytest.raises(TypeError, match="cannot assign .* as parameter 'scale'"):
        net.scale = lib.ones(1)
    with pytest.raises(TypeError, match="as child module 'fc1'"):
        net.fc1 = 3
    net.fc1 = None
    assert net.fc1 is None
    net.count = lib.ones(2)
    assert net._buffers["count"].shape == (2,)
    with pytest.raises(TypeError, match="as buffer 'count'"):
        net.count = "no"
    net.count = None
    assert net.count is None
    net.plain = lib.ones(3)
    assert "plain" in net.__dict__ and "plain" not in net._buffers
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing
    assert getattr(net, "nothing", 5) == 5 and not hasattr(net, "nothing")


def test_attributes_change_kind(lib):
    net = lib.nn.Module()
    net.x = 1
    net.x = lib.nn.Parameter(lib.ones(1))
    assert "x" in net._parameters and "x" not in net.__dict__
    with pytest.raises(TypeError, match="as parameter 'x'"):
        net.x = lib.nn.ReLU()
    net.y = lib.nn.ReLU()
    net.y = lib.nn.Parameter(lib.ones(1))
    assert "y" in net._parameters and "y" not in net._modules
    net.b = lib.nn.Buffer(lib.ones(1), persistent=False)
    assert "b" in net._buffers and "b" in net._non_persistent_buffers_set


def test_delete_and_dir(lib):
    net = make_net(lib)
    assert {"fc1", "scale", "count", "forward", "training"} <= set(dir(net))
    for name in ("fc1", "scale", "count"):
        delattr(net, name)
        assert not hasattr(net, name)
    net.plain = 1
    del net.plain
    with pytest.raises(AttributeError):
        del net.plain


def test_overridden_getattr_may_ask_the_base(lib):
    class Wrapper(lib.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    w = Wrapper(make_net(lib))
    assert w.fc1 is w.inner.fc1


def test_property_errors_are_not_swallowed(lib):
    class Net(lib.nn.Module):
        @property
        def broken(self):
            return self.fc.weight

    with pytest.raises(AttributeError):
        Net().broken


# ---- Traversal


def test_parameters_and_buffers(lib):
    net = make_net(lib)
    assert names(net.named_parameters()) == ["scale", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert names(net.named_parameters(prefix="p", recurse=False)) == ["p.scale"]
    assert len(list(net.parameters())) == 4 and len(list(net.parameters(recurse=False))) == 1
    assert all(isinstance(p, lib.nn.Parameter) for p in net.parameters())
    assert names(net.named_buffers(prefix="b")) == ["b.count"] and len(list(net.buffers())) == 1
    assert list(net.fc1.buffers()) == []
    assert list(net.parameters())[1] is net.fc1.weight


def test_duplicates_come_once(lib):
    net = make_net(lib)
    net.again = net.fc1
    net.tied = net.scale
    assert names(net.named_parameters()) == ["scale", "fc1.weight", "fc1.bias", "fc2.weight"]
    assert "again.weight" in names(net.named_parameters(remove_duplicate=False))
    assert "tied" in names(net.named_parameters(remove_duplicate=False))
    layer = lib.nn.Linear(2, 2)
    seq = lib.nn.Sequential(layer, layer)
    assert names(seq.named_modules()) == ["", "0"] and list(seq.modules()) == [seq, layer]
    assert names(seq.named_modules(remove_duplicate=False)) == ["", "0", "1"]
    assert names(seq.named_children()) == ["0"] and list(seq.children()) == [layer]
    assert names(seq.named_modules(memo={layer}, prefix="p")) == ["p"]
    shared = lib.nn.Module()
    shared.register_buffer("a", lib.ones(1))
    shared.register_buffer("b", shared.a)
    assert names(shared.named_buffers()) == ["a"]
    assert names(shared.named_buffers(remove_duplicate=False)) == ["a", "b"]


def test_apply_visits_children_first(lib):
    seen = []
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))

    @lib.no_grad()
    def init_weights(m):
        seen.append(type(m).__name__)
        if type(m) is lib.nn.Linear:
            m.weight.fill_(1.0)

    assert net.apply(init_weights) is net
    assert seen == ["Linear", "Linear", "Sequential"] and net[1].weight.sum().item() == 4


def test_overridden_methods_of_children_are_called(lib):
    class Frozen(lib.nn.Linear):
        def train(self, mode=True):
            return super().train(False)

    net = lib.nn.Sequential(Frozen(1, 1), lib.nn.Linear(1, 1))
    net.train()
    assert net.training and not net[0].training and net[1].training


# ---- By path


def test_get_submodule(lib):
    net = lib.nn.Module()
    net.net_b = lib.nn.Module()
    net.net_b.conv = lib.nn.Conv2d(1, 2, 3)
    net.net_b.value = 3
    assert net.get_submodule("net_b.conv") is net.net_b.conv and net.get_submodule("") is net
    for target in ("net_c", "net_b.foo", "net_b.value"):
        with pytest.raises(AttributeError):
            net.get_submodule(target)
    assert net.get_parameter("net_b.conv.weight") is net.net_b.conv.weight
    for target in ("net_b.conv.foo", "net_b.conv", "foo.weight"):
        with pytest.raises(AttributeError):
            net.get_parameter(target)
    net.net_b.register_buffer("buf", lib.ones(1))
    assert net.get_buffer("net_b.buf") is net.net_b.buf
    for target in ("net_b.conv.weight", "net_b.foo"):
        with pytest.raises(AttributeError):
            net.get_buffer(target)


def test_set_submodule(lib):
    net = lib.nn.Module()
    net.net_b = lib.nn.Module()
    net.net_b.conv = lib.nn.Conv2d(1, 2, 3)
    net.net_b.value = 3
    new = lib.nn.Conv2d(1, 1, 1)
    net.set_submodule("net_b.conv", new, strict=True)
    assert net.net_b.conv is new
    net.set_submodule("net_b.other", lib.nn.ReLU())
    assert isinstance(net.net_b.other, lib.nn.ReLU)
    with pytest.raises(AttributeError):
        net.set_submodule("net_b.third", new, strict=True)
    with pytest.raises(AttributeError):
        net.set_submodule("net_c.conv", new)
    with pytest.raises(AttributeError):
        net.set_submodule("net_b.value", new)
    with pytest.raises(ValueError):
        net.set_submodule("", new)
    with pytest.raises(ValueError):
        net.set_submodule("net_b.conv", 3)


# ---- State of training


def test_train_eval_requires_grad_zero_grad(lib):
    net = make_net(lib)
    assert net.training and net.eval() is net and not net.fc1.training
    assert net.train() is net and net.fc1.training
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    assert net.requires_grad_(False) is net and not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(lib.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.fc2.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.fc2.weight.grad is None


# ---- Printing


def test_printing(lib):
    net = make_net(lib)
    assert repr(net) == (
        "Net(\n"
        "  (fc1): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (act): ReLU()\n"
        "  (fc2): Linear(in_features=4, out_features=2, bias=False)\n"
        ")"
    )
    nested = lib.nn.Sequential(lib.nn.Sequential(lib.nn.ReLU(inplace=True)), lib.nn.Tanh())
    assert repr(nested) == (
        "Sequential(\n  (0): Sequential(\n    (0): ReLU(inplace=True)\n  )\n  (1): Tanh()\n)"
    )

    class Extra(lib.nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(Extra()) == "Extra(\n  one\n  two\n)"
    assert repr(lib.nn.Module()) == "Module()"


def test_parameter(lib):
    p = lib.nn.Parameter(lib.ones(2, 2))
    assert isinstance(p, lib.Tensor) and p.requires_grad and p.is_leaf
    assert repr(p) == (
        "Parameter containing:\ntensor([[1., 1.],\n        [1., 1.]], requires_grad=True)"
    )
    assert not lib.nn.Parameter(lib.ones(1), requires_grad=False).requires_grad
    assert type(p * 2) is lib.Tensor
    data = lib.ones(3)
    q = lib.nn.Parameter(data)
    data[0] = 5
    assert q.tolist() == [5, 1, 1]
    b = lib.nn.Buffer(lib.ones(1))
    assert isinstance(b, lib.Tensor) and not b.requires_grad


# ---- Copies


def test_deepcopy(lib):
    net = make_net(lib)
    net.again = net.fc1
    other = copy.deepcopy(net)
    assert other.fc1 is not net.fc1 and other.again is other.fc1
    assert lib.equal(other.fc1.weight, net.fc1.weight)
    with lib.no_grad():
        other.fc1.weight.zero_()
    assert net.fc1.weight.abs().sum().item() > 0
    assert isinstance(other.scale, lib.nn.Parameter)


def test_pickle_keeps_everything():
    net = Picklable()
    x = kiln.ones(1, 2)
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert kiln.equal(other(x), net(x)) and other.tied is other.fc
        assert other.fc is not net.fc and other.fc.weight is not net.fc.weight
        assert "b" not in other.state_dict() and len(other._forward_hooks) == 1
        assert kiln.equal(other(x), kiln.nn.functional.gelu(other.fc(x)) * 2)


# ---- The same tree for C++


def test_cpp_sees_python_modules(tmp_path):
    from kiln import _C

    net = make_net(kiln)
    assert [name for name, _ in _C._cpp_named_parameters(net)] == names(net.named_parameters())
    assert all(a is b for (_, a), b in zip(_C._cpp_named_parameters(net), net.parameters()))
    assert _C._cpp_num_params(net) == sum(p.numel() for p in net.parameters())
    assert [name for name, _ in _C._cpp_named_buffers(net)] == ["count"]
    assert _C._cpp_repr(net) == repr(net)
    weight = net.fc1.weight
    net(kiln.ones(1, 3)).sum().backward()
    _C._cpp_to(net, kiln.float64)
    assert net.fc1.weight is weight and weight.dtype is kiln.float64
    assert weight.grad.dtype is kiln.float64 and net.count.dtype is kiln.float64
    path = tmp_path / "net.safetensors"
    _C._save_model(net, str(path))
    other = make_net(kiln)
    _C._load_model(other, str(path))
    assert kiln.allclose(other.fc1.weight, weight.float())


def test_cpp_calls_python_modules():
    from kiln import _C

    seen = []
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda m, args, out: seen.append(m))
    x = kiln.ones(1, 2)
    expected = layer(x).relu()
    assert kiln.equal(_C._cpp_sequential_call([layer, nn.ReLU()], x), expected)
    assert seen == [layer, layer]
