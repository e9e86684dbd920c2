"""Modules of C++ and of Python in one tree."""

import copy

import pytest

import kiln
from kiln import _C, nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.CppModule(_C._cpp_layer("Linear", 3, 4, True))
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_a_layer_of_cpp_in_a_python_module():
    net = Mixed()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert all(isinstance(p, nn.Parameter) for p in net.parameters())
    assert net.first is net.first and net.first.weight is net.first.weight
    assert repr(net.first) == "Linear(in_features=3, out_features=4, bias=True)"
    x = kiln.ones(2, 3)
    expected = x @ net.first.weight.T + net.first.bias
    assert kiln.allclose(net.first(x), expected)
    net(x).sum().backward()
    assert net.first.weight.grad.shape == (4, 3)
    before = net.first(x).detach()
    kiln.optim.SGD(net.parameters(), lr=1.0).step()
    assert not kiln.equal(net.first(x), before)


def test_what_is_done_in_python_is_done_in_cpp():
    net = Mixed()
    other = Mixed()
    net.load_state_dict(other.state_dict())
    x = kiln.ones(1, 3)
    assert kiln.equal(net(x), other(x))
    net.double()
    assert net.first(x.double()).dtype is kiln.float64
    bn = nn.CppModule(_C._cpp_layer("BatchNorm2d", 2))
    assert list(bn.state_dict()) == list(nn.BatchNorm2d(2).state_dict())
    batch = kiln.rand(4, 2, 3, 3)
    bn(batch)
    assert bn.num_batches_tracked.item() == 1 and bn.running_mean.abs().sum().item() > 0
    bn.eval()
    bn(batch)
    assert bn.num_batches_tracked.item() == 1
    bn.double()
    assert bn.running_mean.dtype is kiln.float64
    assert bn(batch.double()).dtype is kiln.float64
    with pytest.raises(AttributeError, match="cannot be replaced"):
        bn.weight = nn.Parameter(kiln.ones(2))
    with pytest.raises(TypeError, match="state_dict"):
        copy.deepcopy(bn)


def test_hooks_on_a_module_of_cpp():
    layer = nn.CppModule(_C._cpp_layer("Linear", 2, 2, False))
    seen = []
    layer.register_forward_hook(lambda m, args, out: seen.append(m))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].shape))
    layer(kiln.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [layer, (1, 2)]


def test_a_python_module_in_a_sequential_of_cpp():
    class Double(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(kiln.full((1,), 2.0))

        def forward(self, x):
            return x * self.factor

    double = Double()
    handle = _C._cpp_sequential([_C._cpp_layer("Linear", 2, 2, True), double, nn.ReLU()])
    net = nn.CppModule(handle)
    assert net._modules["1"] is double
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.factor"]
    assert list(net.parameters())[2] is double.factor
    x = kiln.ones(1, 2)
    expected = (net._modules["0"](x) * 2).relu()
    assert kiln.equal(net(x), expected)
    net(x).sum().backward()
    assert double.factor.grad is not None
    calls = []
    double.register_forward_hook(lambda m, args, out: calls.append(m))
    net(x)
    assert calls == [double]


def test_an_error_in_python_passes_through_cpp():
    class Fails(nn.Module):
        def forward(self, x):
            raise LookupError("here")

    net = nn.CppModule(_C._cpp_sequential([Fails()]))
    with pytest.raises(LookupError, match="here"):
        net(kiln.ones(1))
