"""Quantized weights and updates of low rank in Python: formulas of their papers in NumPy, and the
files of the C++ functions."""

import copy
import pickle

import kiln
import numpy as np
import pytest
from kiln import nn


def model():
    kiln.manual_seed(3)
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 5))


def dequantized(weight, bits, block):
    """By the formula of docs/quantization.md, in float64 with scales in float32."""
    rows = weight.reshape(-1, block).astype(np.float64)
    most = 127 if bits == 8 else 7
    scale = (np.abs(rows).max(1, keepdims=True) / most).astype(np.float32).astype(np.float64)
    return (np.clip(np.rint(rows / scale), -most, most) * scale).reshape(weight.shape)


@pytest.mark.parametrize("bits, level, block", [(8, "channel", 32), (4, "block", 16), (8, "block", 8)])
def test_quantize(bits, level, block):
    net, x = model(), kiln.randn(4, 32)
    before = [net[i].weight.detach().numpy() for i in (0, 2)]
    bias = [net[i].bias.detach().numpy() for i in (0, 2)]
    report = nn.quantize_(net, bits=bits, level=level, block=block)
    blocks = [w.shape[1] if level == "channel" else block for w in before]
    w0, w1 = (dequantized(w, bits, b) for w, b in zip(before, blocks))
    np.testing.assert_allclose(net[0].weight.numpy(), w0, atol=1e-6)
    expected = np.maximum(x.numpy() @ w0.T + bias[0], 0) @ w1.T + bias[1]
    np.testing.assert_allclose(net(x).detach().numpy(), expected, atol=1e-4)
    assert [entry[0] for entry in report.entries] == ["0.weight", "2.weight"]
    assert report.entries[0][4] == pytest.approx(np.abs(w0 - before[0]).max(), abs=1e-6)
    sizes = [w.size * bits // 8 + w.size // b * 4 for w, b in zip(before, blocks)]
    assert report.bytes_before == 7104 and report.bytes_after == sum(sizes)
    assert "2 weights: " in str(report)
    assert {name for name, _ in net.named_parameters()} == {"0.bias", "2.bias"}
    assert "0.weight_quantized.values" in net.state_dict()
    nn.dequantize_(net)
    assert type(net[0]) is nn.Linear and not net[0].weight.requires_grad
    np.testing.assert_allclose(net[0].weight.numpy(), w0, atol=1e-6)


def test_quantized_weights_give_gradients_and_keep_through_casts():
    net = model()
    nn.quantize_(net, bits=4, level="block", block=16)
    x = kiln.randn(4, 32, requires_grad=True)
    net(x).sum().backward()
    w0, w1 = net[0].weight.double(), net[2].weight.double()
    h = x.detach().double() @ w0.T + net[0].bias.detach().double()
    expected = ((kiln.ones(4, 5).double() @ w1) * (h > 0)) @ w0
    assert kiln.allclose(x.grad.double(), expected, atol=1e-4)
    exact = net(x.detach())
    half = net.half()
    assert half[0].weight.dtype == kiln.float16 and half.float()[0].weight.dtype == kiln.float32
    assert kiln.allclose(net(x.detach()), exact, atol=2e-2)  # scales and biases went through float16


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_lora_of_linear_layers(dropout):
    net, x = model(), kiln.randn(6, 32)
    plain = net(x)
    assert nn.lora(net, rank=3, alpha=6, dropout=dropout, targets="0") == 1
    assert kiln.equal(net(x), plain)  # B is zeros
    assert [n for n, p in net.named_parameters() if p.requires_grad] == [
        "0.weight_lora.A",
        "0.weight_lora.B",
    ]
    assert net[0].weight_lora.A.shape == (3, 32) and net[0].weight_lora.B.shape == (48, 3)
    nn.init.normal_(net[0].weight_lora.B)
    net.eval()
    a, b = (p.detach().double().numpy() for p in nn.lora_parameters(net).values())
    w = net.state_dict()["0.weight"].double().numpy() + 2 * b @ a
    np.testing.assert_allclose(net[0].weight.detach().numpy(), w, rtol=1e-4, atol=1e-5)
    inner = np.maximum(x.double().numpy() @ w.T + net[0].bias.detach().numpy(), 0)
    expected = inner @ net[2].weight.detach().numpy().T + net[2].bias.detach().numpy()
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)
    nn.merge(net)
    nn.merge(net)  # once is enough
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)
    nn.unmerge(net)
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)
    if dropout:
        net.train()
        kiln.manual_seed(1)
        first = net(x)
        kiln.manual_seed(1)
        dropped = nn.functional.dropout(x, dropout, True)
        update = dropped.double().numpy() @ (2 * b @ a).T
        base = x.double().numpy() @ net.state_dict()["0.weight"].double().numpy().T
        inner = np.maximum(base + update + net[0].bias.detach().numpy(), 0)
        expected_dropped = inner @ net[2].weight.detach().numpy().T + net[2].bias.detach().numpy()
        np.testing.assert_allclose(first.detach().numpy(), expected_dropped, rtol=1e-4, atol=1e-4)
    nn.merge_and_unload(net)
    assert type(net[0]) is nn.Linear
    assert list(net.state_dict()) == list(model().state_dict())
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"padding_mode": "circular", "padding": 1}, {"stride": 2}])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_lora_of_convolutions(options, dropout):
    kiln.manual_seed(0)
    conv, x = nn.Conv2d(3, 4, 3, **options), kiln.randn(2, 3, 7, 7)
    twin = copy.deepcopy(conv)
    nn.lora(conv, rank=2, targets="weight", dropout=dropout)
    nn.init.normal_(conv.weight_lora.B)
    delta = conv.weight_lora.delta().detach()
    kiln.manual_seed(4)
    out = conv(x)
    kiln.manual_seed(4)
    base = twin(x)
    twin.weight.data.copy_(delta)
    twin.bias.data.zero_()
    expected = base + twin(nn.functional.dropout(x, dropout, True))
    assert kiln.allclose(out, expected, atol=1e-4)
    out.sum().backward()
    assert conv.weight_lora.A.grad is not None and conv._parameters["weight"].grad is None


def test_qlora_trains_an_update_over_four_bits():
    net = model()
    x, y = kiln.randn(64, 32), kiln.randint(0, 5, (64,))
    assert nn.qlora(net, rank=4, bits=4, block=16) == 2
    frozen = net[0].weight_quantized.values.clone()
    adam = kiln.optim.AdamW(nn.lora_parameters(net).values(), lr=2e-2)
    losses = []
    for _ in range(60):
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert kiln.equal(frozen, net[0].weight_quantized.values)
    with pytest.raises(ValueError, match="quantized and cannot take the update"):
        nn.merge(net)
    out = net(x)
    nn.merge_and_unload(net)
    assert type(net[0]) is nn.Linear and kiln.allclose(net(x), out, atol=1e-4)


def test_unload_leaves_the_quantized_weight():
    net = model()
    nn.quantize_(net)
    before = net(kiln.ones(1, 32))
    nn.lora(net)
    nn.init.normal_(net[0].weight_lora.B)
    nn.unload(net)
    assert kiln.equal(net(kiln.ones(1, 32)), before)
    assert "0.weight_quantized.scales" in net.state_dict()


def test_files_and_copies(tmp_path):
    net, x = model(), kiln.randn(3, 32)
    nn.qlora(net, rank=2, block=16)
    nn.init.normal_(net[2].weight_lora.B)
    kiln.save(net.state_dict(), tmp_path / "model.safetensors")
    again = model()
    nn.qlora(again, rank=2, block=16)
    again.load_state_dict(kiln.load(tmp_path / "model.safetensors"))
    assert kiln.equal(again(x), net(x))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert kiln.equal(other(x), net(x))
        nn.merge_and_unload(other)
        assert type(other[0]) is nn.Linear
    assert "Quantized(4 bits" in repr(net) and "rank=2" in repr(net)


def test_names_are_those_of_cpp():
    """The state dict of nn::qlora in C++ (docs/finetuning.md names it)."""
    net = model()
    nn.qlora(net, rank=2, block=16)
    assert set(net.state_dict()) == {
        f"{layer}.{name}"
        for layer in "02"
        for name in (
            "bias",
            "weight_quantized.values",
            "weight_quantized.scales",
            "weight_lora.A",
            "weight_lora.B",
            "weight_lora.merged",
        )
    }


def test_bad_arguments_change_nothing():
    net = model()
    before = repr(net)
    with pytest.raises(ValueError, match="no weight of Sequential matches 'fc'"):
        nn.lora(net, targets="fc")
    with pytest.raises(ValueError, match="expected a rank of 1 or more; got 0"):
        nn.lora(net, rank=0)
    with pytest.raises(ValueError, match="dropout in \\[0, 1\\)"):
        nn.qlora(net, dropout=1.0)
    with pytest.raises(ValueError):
        nn.quantize_(net, bits=5)
    with pytest.raises(ValueError):
        nn.quantize_(net, level="row")
    with pytest.raises(TypeError, match="patterns of paths"):
        nn.quantize_(net, targets=[3])
    with pytest.raises(ValueError, match="has no updates"):
        nn.merge(net)
    with pytest.raises(ValueError, match="no quantized weight"):
        nn.dequantize_(net)
    with pytest.raises(ValueError, match="no shape yet"):
        nn.quantize_(nn.LazyLinear(4))
    assert repr(net) == before and all(p.requires_grad for p in net.parameters())
    nn.lora(net)
    with pytest.raises(ValueError, match="has an update already"):
        nn.lora(net)
    with pytest.raises(ValueError, match="computed and cannot be assigned"):
        net[0].weight = nn.Parameter(kiln.zeros(48, 32))
