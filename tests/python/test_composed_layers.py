"""Layers that consist of others, the losses that PyTorch has not, and initial values."""

import math

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import nn

F = nn.functional
if HAS_TORCH:
    import torch
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def agree(mine, theirs):
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-11)


def pair(name, *args, **options):
    """The layer of both libraries, in float64 with the same parameters."""
    theirs = getattr(torch.nn, name)(*args, **options).double()
    mine = getattr(nn, name)(*args, **options).double()
    assert repr(mine) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    assert list(mine.state_dict()) == list(theirs.state_dict())
    return mine, theirs


def gradients_agree(mine, theirs):
    for (name, p), q in zip(mine.named_parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=name)


# ---- Transformers

SHAPE = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}


@needs_torch
@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"},
                                     {"batch_first": True, "bias": False}])
def test_transformer(options):
    mine, theirs = pair(
        "Transformer", num_encoder_layers=2, num_decoder_layers=2, **SHAPE, **options
    )
    rng = np.random.default_rng(0)
    src, tgt = rng.normal(size=(5, 3, 8)), rng.normal(size=(4, 3, 8))
    if options.get("batch_first"):
        src, tgt = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (src, tgt))
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    outs = []
    for library, layer in ((kiln, mine), (torch, theirs)):
        masks = {
            "tgt_mask": layer.generate_square_subsequent_mask(4, dtype=library.float64),
            "src_key_padding_mask": library.from_numpy(padding.copy()),
            "memory_key_padding_mask": library.from_numpy(padding.copy()),
        }
        if library is torch:  # PyTorch warns where the kinds of masks differ
            masks["src_key_padding_mask"] = library.from_numpy(padding.copy())
        out = layer(library.from_numpy(src.copy()), library.from_numpy(tgt.copy()), **masks)
        (out * out.cos()).sum().backward()
        outs.append(out)
    agree(*outs)
    gradients_agree(mine, theirs)


@needs_torch
def test_transformer_parts():
    theirs = torch.nn.TransformerDecoder(
        torch.nn.TransformerDecoderLayer(**SHAPE), 2, torch.nn.LayerNorm(8)
    ).double()
    mine = nn.TransformerDecoder(nn.TransformerDecoderLayer(**SHAPE), 2, nn.LayerNorm(8)).double()
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    assert repr(mine) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    rng = np.random.default_rng(1)
    for shapes in (((4, 2, 8), (5, 2, 8)), ((4, 8), (5, 8))):
        tgt, memory = (rng.normal(size=s) for s in shapes)
        agree(mine(kiln.from_numpy(tgt.copy()), kiln.from_numpy(memory.copy())),
              theirs(torch.from_numpy(tgt.copy()), torch.from_numpy(memory.copy())))  # fmt: skip
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SHAPE), 3)
    assert len(encoder.layers) == 3 and encoder(kiln.ones(2, 1, 8)).shape == (2, 1, 8)
    weights = [layer.linear1.weight for layer in encoder.layers]
    assert kiln.equal(weights[0], weights[1]) and weights[0] is not weights[1]


def test_transformer_errors(lib):
    model = lib.nn.Transformer(num_encoder_layers=1, num_decoder_layers=1, **SHAPE)
    for src, tgt in (((3, 2, 8), (3, 1, 8)), ((3, 2, 7), (3, 2, 8))):
        with pytest.raises(RuntimeError, match="must be equal"):
            model(lib.ones(src), lib.ones(tgt))
    with pytest.raises(RuntimeError, match="relu/gelu"):
        lib.nn.TransformerDecoderLayer(8, 2, activation="no")
    if lib is kiln:
        for layer, count in ((1, 2), (nn.TransformerEncoderLayer(8, 2), 2**64), (nn.ReLU(), -1)):
            with pytest.raises((TypeError, ValueError), match="TransformerEncoder"):
                nn.TransformerEncoder(layer, count)
        with pytest.raises(ValueError, match="num_layers"):
            nn.LSTM(1, 1, 2**40)
    mask = lib.nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]


# ---- Losses that consist of layers


@needs_torch
def test_adaptive_log_softmax():
    mine, theirs = pair("AdaptiveLogSoftmaxWithLoss", 8, 20, [5, 12], div_value=2.0, head_bias=True)
    rng = np.random.default_rng(2)
    x, target = rng.normal(size=(6, 8)), np.array([0, 4, 7, 19, 12, 3])
    a, b = mine(kiln.from_numpy(x.copy()), kiln.from_numpy(target)), theirs(torch.from_numpy(x.copy()), torch.from_numpy(target))
    agree(a.output, b.output)
    agree(a.loss, b.loss)
    a.loss.backward()
    b.loss.backward()
    gradients_agree(mine, theirs)
    agree(mine.log_prob(kiln.from_numpy(x.copy())), theirs.log_prob(torch.from_numpy(x.copy())))
    assert mine.predict(kiln.from_numpy(x.copy())).tolist() == theirs.predict(torch.from_numpy(x.copy())).tolist()
    one = mine(kiln.from_numpy(x[0].copy()), kiln.tensor(4))
    assert one.output.dim() == 0 and one.loss.item() == pytest.approx(-one.output.item())
    for cutoffs in ([], [3, 3], [0, 4], [20], [5.5]):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
    for bad_x, bad_target in ((x, [0, 1]), (x[0], [0]), (x, [0, 1, 2, 3, 4, 20])):
        with pytest.raises(RuntimeError):
            mine(kiln.tensor(bad_x), kiln.tensor(bad_target))


@needs_torch
def test_linear_cross_entropy_loss():
    weight = np.array([1.0, 2, 0.5])
    theirs = torch.nn.LinearCrossEntropyLoss(4, 3, bias=True, weight=torch.from_numpy(weight), label_smoothing=0.1).double()
    mine = nn.LinearCrossEntropyLoss(4, 3, bias=True, weight=kiln.from_numpy(weight), label_smoothing=0.1).double()
    assert repr(mine) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    x, target = np.random.default_rng(3).normal(size=(5, 4)), np.array([0, 1, 2, 1, 0])
    a, b = mine(kiln.from_numpy(x), kiln.from_numpy(target)), theirs(torch.from_numpy(x), torch.from_numpy(target))
    agree(a, b)
    a.backward()
    b.backward()
    gradients_agree(mine, theirs)


@needs_torch
def test_linear_cross_entropy_loss_of_several_outputs():
    theirs = torch.nn.LinearCrossEntropyLoss(4, 3, out_features=(2, 5), bias=True).double()
    mine = nn.LinearCrossEntropyLoss(4, 3, out_features=(2, 5), bias=True).double()
    assert repr(mine) == repr(theirs)
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    random = np.random.default_rng(4)
    x, target = random.normal(size=(6, 4)), random.integers(0, 3, size=(6, 2, 5))
    a, b = mine(kiln.from_numpy(x), kiln.from_numpy(target)), theirs(torch.from_numpy(x), torch.from_numpy(target))
    agree(a, b)
    a.backward()
    b.backward()
    gradients_agree(mine, theirs)
    with pytest.raises(RuntimeError, match="linear_weight"):
        nn.functional.linear_cross_entropy(kiln.ones(4), kiln.ones(3, 2, 4), kiln.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="linear_bias"):
        nn.functional.linear_cross_entropy(
            kiln.ones(1, 4), kiln.ones(3, 2, 4), kiln.tensor([[0, 1]]), linear_bias=kiln.ones(6)
        )


def test_triplet_loss_with_a_distance(lib):
    a, p, n = (lib.linspace(i, i + 2, 6).reshape(2, 3) for i in (0, 1, 4))
    loss = lib.nn.TripletMarginWithDistanceLoss(
        distance_function=lambda x, y: (x - y).abs().sum(1), margin=10.0, reduction="none"
    )
    assert loss(a, p, n).tolist() == pytest.approx([10 + 3 - 12] * 2)
    assert lib.nn.TripletMarginWithDistanceLoss()(a, a, n).item() == 0
    with pytest.raises(ValueError):
        lib.nn.TripletMarginWithDistanceLoss(margin=-1)


# ---- Losses that PyTorch has not, written out in NumPy


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_focal_loss():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3, 4)), (rng.random((3, 4)) > 0.5).astype(float)
    p = np.where(y == 1, sigmoid(x), 1 - sigmoid(x))
    for alpha, gamma in ((0.25, 2.0), (-1.0, 1.5), (0.5, 0.0)):
        weight = 1.0 if alpha < 0 else np.where(y == 1, alpha, 1 - alpha)
        expected = -weight * (1 - p) ** gamma * np.log(p)
        got = F.focal_loss(kiln.from_numpy(x), kiln.from_numpy(y), alpha, gamma, "none")
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10)
        mean = nn.FocalLoss(alpha, gamma)(kiln.from_numpy(x), kiln.from_numpy(y))
        assert mean.item() == pytest.approx(expected.mean())
    for wrong in ({"alpha": 2}, {"gamma": -1}, {"reduction": "no"}):
        with pytest.raises(ValueError):
            F.focal_loss(kiln.from_numpy(x), kiln.from_numpy(y), **wrong)
    with pytest.raises(RuntimeError):
        F.focal_loss(kiln.ones(2, 1), kiln.ones(2, 2))


def test_dice_loss():
    rng = np.random.default_rng(5)
    x, y = rng.random((3, 2, 4)), (rng.random((3, 2, 4)) > 0.5).astype(float)
    for smooth in (1.0, 0.5):
        sums = [z.reshape(3, -1).sum(1) for z in (x * y, x, y)]
        expected = 1 - (2 * sums[0] + smooth) / (sums[1] + sums[2] + smooth)
        got = F.dice_loss(kiln.from_numpy(x), kiln.from_numpy(y), smooth, "none")
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-10)
        got = nn.DiceLoss(smooth, "sum")(kiln.from_numpy(x), kiln.from_numpy(y))
        assert got.item() == pytest.approx(expected.sum())
    assert F.dice_loss(kiln.from_numpy(y), kiln.from_numpy(y)).item() == pytest.approx(0)
    with pytest.raises(ValueError):
        F.dice_loss(kiln.ones(2, 2), kiln.ones(2, 2), smooth=-1)
    with pytest.raises(RuntimeError):
        F.dice_loss(kiln.tensor(1.0), kiln.tensor(1.0))


def test_info_nce_loss():
    rng = np.random.default_rng(6)
    q, k, n = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(5, 3))

    def cos(a, b):
        return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (
            b / np.linalg.norm(b, axis=1, keepdims=True)
        ).T

    def each(scores, own):
        return np.log(np.exp(scores).sum(1)) - scores[np.arange(4), own]

    expected = each(cos(q, k) / 0.1, np.arange(4))
    t = kiln.from_numpy
    np.testing.assert_allclose(F.info_nce_loss(t(q), t(k), reduction="none").numpy(), expected, rtol=1e-9)
    own = np.diag(cos(q, k))[:, None]
    expected = each(np.concatenate([own, cos(q, n)], 1) / 0.5, np.zeros(4, int))
    assert nn.InfoNCELoss(0.5)(t(q), t(k), t(n)).item() == pytest.approx(expected.mean())
    with pytest.raises(ValueError):
        F.info_nce_loss(t(q), t(k), temperature=0)
    with pytest.raises(RuntimeError):
        F.info_nce_loss(t(q), t(k), t(n)[:, :2])


# ---- Others


def test_swiglu():
    layer = nn.SwiGLU(4, 3, bias=True)
    x = kiln.linspace(-2, 2, 8).reshape(2, 4)
    inner = x.numpy() @ layer.linear_inner.weight.detach().numpy().T + layer.linear_inner.bias.detach().numpy()
    outer = x.numpy() @ layer.linear_outer.weight.detach().numpy().T + layer.linear_outer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), inner * sigmoid(inner) * outer, rtol=1e-5)
    assert list(nn.SwiGLU(4, 3).state_dict()) == ["linear_inner.weight", "linear_outer.weight"]


def test_tables_from_tensors(lib):
    table = lib.linspace(0, 1, 12).reshape(4, 3)
    layer = lib.nn.Embedding.from_pretrained(table, padding_idx=1)
    assert not layer.weight.requires_grad and layer.padding_idx == 1
    assert lib.equal(layer(lib.tensor([2])), table[2:3])
    assert lib.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bag = lib.nn.EmbeddingBag.from_pretrained(table, mode="sum", freeze=False)
    out = bag(lib.tensor([0, 1, 2]), lib.tensor([0, 2]), lib.tensor([1.0, 2, 3]))
    assert lib.allclose(out, lib.stack([table[0] + 2 * table[1], 3 * table[2]]))
    with_end = lib.nn.EmbeddingBag(4, 3, include_last_offset=True)
    assert with_end(lib.tensor([0, 1, 2]), lib.tensor([0, 2, 3])).shape == (2, 3)
    frozen = lib.nn.Embedding(4, 3, _weight=table, _freeze=True)
    assert not frozen.weight.requires_grad


def test_gaussian_noise():
    kiln.manual_seed(0)
    layer, x = nn.GaussianNoise(0.5), kiln.full((20000,), 3.0)
    y = layer(x)
    assert abs(y.mean().item() - 3) < 0.02 and abs(y.std().item() - 0.5) < 0.02
    assert layer.eval()(x) is x or kiln.equal(layer(x), x)


def test_dropouts(lib):
    lib.manual_seed(0)
    x = lib.ones(8, 50, 4)
    y = lib.nn.Dropout1d(0.5)(x)
    assert lib.equal(y.amax(2), y.amin(2)) and set(y.flatten().tolist()) == {0.0, 2.0}
    y = lib.nn.Dropout3d(0.5)(lib.ones(8, 50, 2, 2, 2)).flatten(2)
    assert lib.equal(y.amax(2), y.amin(2)) and set(y.flatten().tolist()) == {0.0, 2.0}
    x = lib.randn(20000)
    y = lib.nn.AlphaDropout(0.3)(x)
    assert abs(y.mean().item()) < 0.05 and abs(y.std().item() - 1) < 0.05
    y = lib.nn.FeatureAlphaDropout(0.5)(lib.zeros(8, 50, 4))
    assert lib.equal(y.amax(2), y.amin(2)) and len(set(y.flatten().tolist())) == 2
    kept = lib.nn.RReLU(0.1, 0.3)(-lib.ones(1000))
    assert -0.3 <= kept.min().item() < -0.28 and -0.12 < kept.max().item() <= -0.1


def test_output_sizes_of_a_call(lib):
    layer = lib.nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    x = lib.ones(1, 1, 4, 4)
    assert layer(x).shape == (1, 1, 7, 7) and layer(x, output_size=(8, 7)).shape == (1, 1, 8, 7)
    assert layer(x, output_size=(1, 1, 7, 8)).shape == (1, 1, 7, 8)
    for size in ((9, 7), (6, 7), (7,)):
        with pytest.raises(ValueError):
            layer(x, output_size=size)
    pool, unpool = lib.nn.MaxPool2d(2, return_indices=True), lib.nn.MaxUnpool2d(2)
    y, index = pool(lib.arange(16.0).reshape(1, 4, 4))
    assert unpool(y, index).shape == (1, 4, 4)
    assert unpool(y, index, output_size=(5, 5)).nonzero().tolist() == [[0, 1, 0], [0, 1, 2], [0, 2, 3], [0, 3, 0]]
    y, index = y.unsqueeze(0), index.unsqueeze(0)
    assert unpool(y, index, output_size=(1, 1, 5, 5)).shape == (1, 1, 5, 5)


def test_lengths_of_ctc(lib):
    log_probs = lib.linspace(-1, 1, 24).reshape(4, 2, 3).log_softmax(2)
    targets = lib.tensor([[1, 2], [2, 1]])
    loss = lib.nn.CTCLoss()
    as_tensors = loss(log_probs, targets, lib.tensor([4, 3]), lib.tensor([2, 1]))
    assert loss(log_probs, targets, (4, 3), (2, 1)).item() == pytest.approx(as_tensors.item())


# ---- Initial values


def test_orthogonal(lib):
    lib.manual_seed(0)
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        x = lib.nn.init.orthogonal_(lib.empty(*shape), gain=2.0).flatten(1)
        gram = x @ x.T if shape[0] <= x.size(1) else x.T @ x
        assert lib.allclose(gram, 4 * lib.eye(len(gram)), atol=1e-5)
    with pytest.raises(ValueError if lib is not kiln else RuntimeError):
        lib.nn.init.orthogonal_(lib.empty(3))


def test_trunc_normal(lib):
    lib.manual_seed(0)
    x = lib.nn.init.trunc_normal_(lib.empty(20000), mean=1.0, std=2.0, a=0.0, b=3.0)
    assert x.min() >= 0 and x.max() <= 3
    # The mean and deviation of the normal distribution within [-0.5, 1] of its deviations.
    density = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) for z in (-0.5, 1.0)]
    inside = (math.erf(1 / math.sqrt(2)) + math.erf(0.5 / math.sqrt(2))) / 2
    shift = (density[0] - density[1]) / inside
    spread = 1 + (-0.5 * density[0] - 1.0 * density[1]) / inside - shift**2
    assert abs(x.mean().item() - (1 + 2 * shift)) < 0.02
    assert abs(x.std().item() - 2 * math.sqrt(spread)) < 0.02


def test_dirac_and_sparse(lib):
    for groups in (1, 2):
        layer = lib.nn.Conv1d(4, 4, 3, padding=1, bias=False)
        with lib.no_grad():
            lib.nn.init.dirac_(layer.weight, groups)
        x = lib.linspace(0, 1, 24).reshape(1, 4, 6)
        expected = x if groups == 1 else x[:, [0, 1, 0, 1]]
        assert lib.allclose(layer(x), expected)
    with pytest.raises(ValueError):
        lib.nn.init.dirac_(lib.empty(3, 3, 3), 2)
    x = lib.nn.init.sparse_(lib.empty(10, 50), 0.25, 2.0)
    assert ((x == 0).sum(0) == 3).all() and abs(x[x != 0].std().item() - 2) < 0.3
