"""Layers folded for inference."""

import kiln
import pytest


def layers(bias):
    conv = kiln.nn.Conv2d(4, 6, 3, padding=1, groups=2, bias=bias, dtype=kiln.float64)
    bn = kiln.nn.BatchNorm2d(6, eps=1e-3, dtype=kiln.float64)
    for _ in range(3):
        bn(kiln.randn(4, 6, 5, 5, dtype=kiln.float64) * 2 + 0.5)
    with kiln.no_grad():
        bn.weight.copy_(kiln.randn(6, dtype=kiln.float64))
        bn.bias.copy_(kiln.randn(6, dtype=kiln.float64))
    return conv, bn


@pytest.mark.parametrize("bias", [True, False])
def test_fuse_conv_bn(bias):
    conv, bn = layers(bias)
    with pytest.raises(AssertionError, match="eval"):
        kiln.nn.utils.fuse_conv_bn_eval(conv, bn)
    conv.eval()
    bn.eval()
    fused = kiln.nn.utils.fuse_conv_bn_eval(conv, bn)
    x = kiln.randn(2, 4, 9, 9, dtype=kiln.float64)
    assert kiln.allclose(fused(x), bn(conv(x)), 1e-12, 1e-12)
    assert isinstance(fused.weight, kiln.nn.Parameter) and fused.weight is not conv.weight
    assert (conv.bias is not None) == bias
    with pytest.raises(AssertionError, match="got 5"):
        kiln.nn.utils.fuse_conv_bn_eval(conv, kiln.nn.BatchNorm2d(5).eval())


def run_in(module):
    """Gives norms statistics and scales of their own."""
    for child in module.modules():
        if getattr(child, "running_mean", None) is not None:
            kiln.nn.init.uniform_(child.running_mean, -0.5, 0.5)
            kiln.nn.init.uniform_(child.running_var, 0.5, 2)
            kiln.nn.init.uniform_(child.weight, 0.5, 1.5)
            kiln.nn.init.normal_(child.bias)
    return module.eval()


def norms(module):
    return [name for name, child in module.named_modules() if "BatchNorm" in type(child).__name__]


@pytest.mark.parametrize(
    "name, size", [("resnet18", 64), ("resnet50", 64), ("mobilenet_v3_small", 64), ("vgg11_bn", 32)]
)
def test_fuse_models(name, size):
    kiln.manual_seed(0)
    model = run_in(getattr(kiln.models, name)(num_classes=7))
    x = kiln.randn(2, 3, size, size)
    with kiln.no_grad():
        expected = model(x)
        assert norms(model)
        assert kiln.nn.utils.fuse_(model) is model
        assert not norms(model)
        assert kiln.allclose(model(x), expected, rtol=1e-3, atol=1e-3 * expected.abs().amax().item())


def test_fuse_of_pairs_by_name_and_of_transposed_convolutions():
    class Net(kiln.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm = kiln.nn.Linear(4, 6), kiln.nn.BatchNorm1d(6)
            self.up = kiln.nn.Sequential(kiln.nn.ConvTranspose1d(6, 5, 2), kiln.nn.BatchNorm1d(5))

        def forward(self, x):
            return self.up(self.norm(self.fc(x))[:, :, None])

    net, x = run_in(Net().double()), kiln.randn(3, 4, dtype=kiln.float64)
    expected = net(x)
    kiln.nn.utils.fuse_(net)
    assert norms(net) == ["norm"]
    assert kiln.allclose(net(x), expected, 1e-10, 1e-10)
    kiln.nn.utils.fuse_(net, pairs=[("fc", "norm")])
    assert norms(net) == [] and kiln.allclose(net(x), expected, 1e-10, 1e-10)


def test_fuse_leaves_what_it_must():
    s, b = kiln.nn.Sequential, kiln.nn.BatchNorm2d
    conv = kiln.nn.Conv2d(2, 2, 1)
    hooked = s(kiln.nn.Conv2d(2, 2, 1), b(2))
    hooked[0].register_forward_hook(lambda module, args, out: out * 2)
    shared = s(conv, b(2), conv)
    other = s(kiln.nn.Conv2d(2, 2, 1), b(2, track_running_stats=False))
    between = s(kiln.nn.Conv2d(2, 2, 1), kiln.nn.ReLU(), b(2))
    net = s(hooked, shared, other, between)
    with pytest.raises(AssertionError, match="eval mode"):
        kiln.nn.utils.fuse_(net)
    kiln.nn.utils.fuse_(net.eval())
    assert norms(net) == ["0.1", "1.1", "2.1", "3.2"]
    before = repr(net)
    with pytest.raises(ValueError, match="got '3.0' and '3.1'"):
        kiln.nn.utils.fuse_(net, pairs=[("1.0", "1.1"), ("3.0", "3.1")])
    assert repr(net) == before
