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


@pytest.mark.parametrize(
    "activation", ["ReLU", "ReLU6", "GELU", "SiLU", "Hardswish", "Hardsigmoid", "Sigmoid", "Tanh"]
)
@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d"])
def test_fuse_activations(kind, activation):
    nn = kiln.nn
    kiln.manual_seed(1)
    norm = nn.BatchNorm1d if kind == "Conv1d" else nn.BatchNorm2d
    conv = getattr(nn, kind)
    net = nn.Sequential(
        *(conv(3, 8, 3, padding=1), norm(8), getattr(nn, activation)()),
        *(conv(8, 8, 3, groups=8), getattr(nn, activation)()),
    )
    run_in(net)
    x = kiln.randn(2, 3, 9) if kind == "Conv1d" else kiln.randn(2, 3, 9, 7)
    expected, keys = net(x), list(net.state_dict())
    nn.utils.fuse_(net)
    assert [type(layer).__name__ for layer in net] == [
        f"ConvActivation{kind[-2:]}", "Identity", "Identity", f"ConvActivation{kind[-2:]}", "Identity",
    ]  # fmt: skip
    assert kiln.allclose(net(x), expected, 1e-4, 1e-5)
    assert [key for key in keys if not key.startswith("1.")] == list(net.state_dict())
    name = "gelu" if activation == "GELU" else activation.lower()
    assert f"activation={name})" in repr(net)
    # Gradients flow on.
    net[0].weight.requires_grad_()
    net(x).square().sum().backward()
    assert net[0].weight.grad is not None


def test_fuse_leaves_layers_that_are_seen_elsewhere():
    nn = kiln.nn
    conv = nn.Conv2d(2, 2, 1)
    hooked = nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU())
    seen = []
    hooked[1].register_forward_hook(lambda module, args, out: seen.append(out))
    shared = nn.Sequential(conv, nn.ReLU(), conv)
    reflected = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), nn.ReLU())
    apart = nn.Sequential(nn.Conv2d(2, 2, 1), nn.MaxPool2d(1), nn.ReLU())
    own = nn.Conv2d(2, 2, 1)
    net = nn.Sequential(hooked, shared, reflected, apart, nn.Sequential(own, nn.ReLU6())).eval()
    x = kiln.randn(1, 2, 4, 4)
    expected = net(x)
    nn.utils.fuse_(net)
    names = [[type(layer).__name__ for layer in part] for part in net]
    assert names == [
        ["Conv2d", "ReLU"],
        ["Conv2d", "ReLU", "Conv2d"],
        ["Conv2d", "ReLU"],
        ["Conv2d", "MaxPool2d", "ReLU"],
        ["ConvActivation2d", "Identity"],
    ]
    assert kiln.equal(net(x), expected) and len(seen) == 2
    assert type(own) is nn.Conv2d and net[4][0].weight is own.weight


def test_activations_of_convolutions_have_the_bits_of_the_ops():
    F = kiln.nn.functional
    x, w, b = kiln.randn(2, 4, 9, 9), kiln.randn(6, 4, 3, 3), kiln.randn(6)
    r = kiln.randn(2, 6, 9, 9)
    with kiln.no_grad():
        y = F.conv2d(x, w, b, padding=1) + r
        assert kiln.equal(F.conv2d(x, w, b, padding=1, activation="relu6", residual=r), F.relu6(y))
        assert kiln.equal(F.conv2d(x, w, b, padding=1, residual=r), y)
    with pytest.raises(ValueError, match="unknown activation 'swish'; expected none, relu"):
        F.conv2d(x, w, activation="swish")
    with pytest.raises(ValueError, match="residual"):
        F.conv2d(x, w, residual=r)
