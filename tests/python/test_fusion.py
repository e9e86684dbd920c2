"""Layers folded for inference."""

import copy

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
@pytest.mark.parametrize("kind", ["Conv1d", "Conv2d", "ConvTranspose2d"])
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
    joined = f"{kind[:-2]}Activation{kind[-2:]}"
    assert [type(layer).__name__ for layer in net] == [
        *(joined, "Identity", "Identity"),
        *(joined, "Identity"),
    ]
    assert kiln.allclose(net(x), expected, 1e-4, 1e-5)
    assert [key for key in keys if not key.startswith("1.")] == list(net.state_dict())
    name = "gelu" if activation == "GELU" else activation.lower()
    assert f"activation={name})" in repr(net)
    # Gradients flow on.
    net[0].weight.requires_grad_()
    net(x).square().sum().backward()
    assert net[0].weight.grad is not None


@pytest.mark.parametrize("activation", ["ReLU", "GELU", "Tanh"])
def test_fuse_activations_of_linear_layers(activation):
    nn = kiln.nn
    net = nn.Sequential(nn.Linear(5, 40), getattr(nn, activation)(), nn.Linear(40, 3, bias=False))
    net.append(getattr(nn, activation)())
    x, keys = kiln.randn(2, 7, 5), list(net.state_dict())
    expected = net.eval()(x)
    nn.utils.fuse_(net)
    names = [type(layer).__name__ for layer in net]
    assert names == ["LinearActivation", "Identity", "LinearActivation", "Identity"]
    assert kiln.allclose(net(x), expected, 1e-5, 1e-6) and list(net.state_dict()) == keys
    kiln.nn.quantize_(net, level="channel", activations="dynamic")
    assert kiln.allclose(net(x), expected, 0.1, 0.05)


def test_transposed_convolutions_with_an_activation_take_the_size_of_the_result():
    nn = kiln.nn
    net = nn.Sequential(nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1), nn.SiLU()).eval()
    x, size = kiln.randn(2, 3, 5, 6), [10, 11]
    expected = net[1](net[0](x, output_size=size))
    nn.utils.fuse_(net)
    assert expected.shape == (2, 4, 10, 11)
    assert kiln.allclose(net[0](x, output_size=size), expected, 1e-5, 1e-6)


def inverted_residual(inputs, wide, outputs, **options):
    """Expands, convolves each channel, projects: layers as in a mobile network."""
    nn = kiln.nn
    return nn.Sequential(
        *(nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()),
        *(nn.Conv2d(wide, wide, 3, padding=1, groups=wide, **options), nn.BatchNorm2d(wide)),
        *(nn.ReLU6(), nn.Conv2d(wide, outputs, 1), nn.BatchNorm2d(outputs)),
    )


class Counted:
    """How many times functional.separable_conv2d runs."""

    def __init__(self, monkeypatch):
        self.count = 0
        functional = kiln.nn.utils.fused_layers.functional
        original = functional.separable_conv2d

        def counting(*args, **options):
            self.count += 1
            return original(*args, **options)

        monkeypatch.setattr(functional, "separable_conv2d", counting)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [8, 57])
@pytest.mark.parametrize("dtype", [kiln.float32, kiln.float64, kiln.bfloat16])
def test_fuse_blocks_of_mobile_networks(monkeypatch, stride, size, dtype):
    nn = kiln.nn
    kiln.manual_seed(2)
    net = run_in(inverted_residual(16, 96, 24, stride=stride))
    keys = [key for key in net.state_dict() if key.partition(".")[0] not in "147"]
    x = kiln.randn(2, 16, size, size + 3)
    with kiln.no_grad():
        expected = net(x)
    nn.utils.fuse_(net)
    assert type(net) is nn.utils.SeparableSequential
    # (The folded norms make biases.)
    assert sorted({*keys, "0.bias", "3.bias"}) == sorted(net.state_dict())
    calls = Counted(monkeypatch)
    bound = {kiln.float32: 1e-4, kiln.float64: 1e-4, kiln.bfloat16: 0.1}[dtype]
    with kiln.no_grad():
        out = net.to(dtype)(x.to(dtype))
        assert kiln.allclose(out.float(), expected, bound, bound * expected.abs().amax().item())
        assert calls.count == 1
        # Layer by layer the same bits.
        y = x.to(dtype)
        for layer in net:
            y = layer(y)
        assert dtype == kiln.bfloat16 or kiln.equal(y, out)
    net.train()
    net.double()(x.double()).square().sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_blocks_reach_into_nested_sequentials_and_around_other_layers(monkeypatch):
    nn = kiln.nn
    model = run_in(kiln.models.mobilenet_v3_small(num_classes=7))
    x = kiln.randn(1, 3, 64, 64)
    with kiln.no_grad():
        expected = model(x)
        nn.utils.fuse_(model)
        joined = [m for m in model.modules() if type(m) is nn.utils.SeparableSequential]
        calls = Counted(monkeypatch)
        out = model(x)
    # The first block has no convolution of 1 x 1 beside the depthwise one.
    assert len(joined) == calls.count == 10
    assert kiln.allclose(out, expected, 1e-3, 1e-3 * expected.abs().amax().item())


def test_layers_of_blocks_that_somebody_looks_at_run_alone(monkeypatch):
    nn, calls = kiln.nn, Counted(monkeypatch)
    net = nn.utils.fuse_(run_in(inverted_residual(4, 8, 4)))
    x, seen = kiln.randn(1, 4, 6, 6), []
    expected = net(x)
    assert calls.count == 1
    with net[3].register_forward_hook(lambda module, args, out: seen.append(out)):
        assert kiln.equal(net(x), expected) and len(seen) == 1 and calls.count == 1
    hook = nn.modules.module.register_module_forward_hook(lambda *args: seen.append(args[0]))
    with hook:
        assert kiln.equal(net(x), expected) and calls.count == 1 and seen[1] is net[0]
    copied = kiln.func.functional_call(net, {"6.bias": kiln.zeros(4)}, (x,))
    assert calls.count == 2 and not kiln.allclose(copied, expected)
    # Another layer in its place is what runs then.
    net[3] = nn.Conv2d(8, 8, 3, padding=1)
    assert calls.count == 2 and net(x).shape == expected.shape and calls.count == 2
    assert type(nn.utils.fuse_(nn.Sequential(nn.Conv2d(4, 4, 3, groups=4)).eval())) is nn.Sequential


def test_blocks_notice_what_is_changed_without_their_knowing(monkeypatch):
    nn, calls = kiln.nn, Counted(monkeypatch)
    net = nn.utils.fuse_(run_in(inverted_residual(4, 8, 4)))
    x = kiln.randn(1, 4, 6, 6)
    expected = net(x)
    assert calls.count == 1
    # A stride that the projection gets afterwards is heeded, and so is its going.
    net[6].stride = (2, 2)
    assert kiln.equal(net(x), expected[:, :, ::2, ::2]) and calls.count == 2
    net[6].stride = (1, 1)
    assert kiln.equal(net(x), expected) and calls.count == 3
    # So is a layer that somebody puts into the dict of modules, and one that is taken out.
    net._modules["6"] = nn.Identity()
    assert net(x).shape == (1, 8, 6, 6) and calls.count == 4
    del net._modules["6"]
    assert net(x).shape == (1, 8, 6, 6) and calls.count == 5
    # Copies have a plan of their own.
    twin = copy.deepcopy(net)
    with kiln.no_grad():
        twin[0].bias += 1
    assert not kiln.equal(twin(x), net(x)) and calls.count == 7
    with pytest.raises(TypeError, match="expected modules; got int"):
        kiln._C._any_hooks((3,))


def test_a_class_says_which_layers_compute_its_activations():
    nn = kiln.nn

    class Own(nn.Module):
        fusable = (("conv", "norm"), ("conv", "activation"))

        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
            self.activation = nn.SiLU()

        def forward(self, x):
            return self.activation(self.norm(self.conv(x)))

    own, image = run_in(Own()), kiln.randn(2, 2, 6, 5)
    with kiln.no_grad():
        expected = own(image)
        nn.utils.fuse_(own)
        assert own.conv.activation == "silu" and type(own.activation) is nn.Identity
        assert kiln.allclose(own(image), expected, 1e-5, 1e-6)
    block = kiln.models.mobilenet_v3_large().features[4].block
    excite = next(m for m in block if type(m).__name__ == "SqueezeExcitation").eval()
    x = kiln.randn(2, excite.fc1.in_channels, 5, 7)
    with kiln.no_grad():
        expected = excite(x)
        nn.utils.fuse_(excite)
        assert excite.fc1.activation == "relu" and excite.fc2.activation == "hardsigmoid"
        assert type(excite.activation) is nn.Identity
        assert kiln.allclose(excite(x), expected, 1e-5, 1e-6)


def test_separable_conv2d_is_convolutions_one_after_another():
    F = kiln.nn.functional
    kiln.manual_seed(4)
    x, taps, bias = kiln.randn(2, 16, 61, 40), kiln.randn(64, 1, 5, 5), kiln.randn(64)
    widen, narrow, added = kiln.randn(64, 16, 1, 1), kiln.randn(8, 64, 1, 1), kiln.randn(2, 8, 31, 20)
    with kiln.no_grad():
        y = F.conv2d(x, widen, activation="relu")
        y = F.conv2d(y, taps, bias, 2, 2, groups=64, activation="silu")
        wide = y
        y = F.conv2d(y, narrow, residual=added, activation="relu6")
        options = {"activation": "silu", "expand_weight": widen, "expand_activation": "relu"}
        assert kiln.equal(F.separable_conv2d(x, taps, bias, 2, 2, **options), wide)
        options |= {"project_weight": narrow, "project_activation": "relu6", "residual": added}
        assert kiln.equal(F.separable_conv2d(x, taps, bias, 2, 2, **options), y)
        one = {**options, "residual": added[0]}
        assert kiln.equal(F.separable_conv2d(x[0], taps, bias, 2, 2, **one), y[0])
    with kiln.autocast("cpu", dtype=kiln.bfloat16):
        assert F.separable_conv2d(x, taps, bias, 2, 2, **options).dtype == kiln.bfloat16


@pytest.mark.parametrize(
    "options, text",
    [
        ({"expand_weight": (6, 3, 1, 1)}, r"expand.weight does not fit; got \[6, 3, 1, 1\]; expected \[O, 4, 1, 1\]"),
        ({"expand_weight": (6, 4, 1, 1)}, r"the weight does not fit; got \[4, 1, 3, 3\]; expected \[6, 1, KH, KW\]"),
        ({"project_weight": (6, 4, 3, 3)}, "project.weight does not fit"),
        ({"residual": (1, 4, 3, 3)}, "got no project"),
        ({"project_weight": (6, 4, 1, 1), "residual": (1, 6, 4, 3)}, "residual"),
        ({"project_bias": (4,)}, "there is no project.weight"),
        ({"expand_activation": "relu"}, "there is no expand.weight"),
        ({"dilation": 3}, "kernel is larger"),
        ({"stride": 0}, "stride"),
        ({"padding": 1 << 40}, "padding"),
    ],
)  # fmt: skip
def test_separable_conv2d_refuses(options, text):
    options = {
        name: kiln.ones(*value) if isinstance(value, tuple) else value
        for name, value in options.items()
    }
    with pytest.raises(ValueError, match=text):
        kiln.nn.functional.separable_conv2d(
            kiln.ones(1, 4, 5, 5), kiln.ones(4, 1, 3, 3), **options
        )


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
