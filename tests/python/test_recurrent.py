"""Recurrent layers beside PyTorch's: states, sequences without a batch, packed sequences; the
helpers of nn.utils.rnn."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import nn

if HAS_TORCH:
    import torch
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")

KINDS = [
    ("RNN", {}), ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}),
    ("GRU", {}), ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {}), ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 2}),
    ("LSTM", {"bias": False, "batch_first": True}),
]  # fmt: skip
LENGTHS = [3, 6, 1, 4]


def pair(name, options, dtype="float64"):
    mine = getattr(nn, name)(4, 5, **options).to(getattr(kiln, dtype))
    theirs = getattr(torch.nn, name)(4, 5, **options).to(getattr(torch, dtype))
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, (tuple, list)) else [x]


def agree(mine, theirs):
    for x, y in zip(flat(mine), flat(theirs), strict=True):
        if y is None:
            assert x is None
        else:
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-11)


def states(name, options, batch, rng):
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    size = options.get("proj_size", 0) or 5
    shape = (rows, *batch)
    h = rng.normal(size=(*shape, size))
    return (h, rng.normal(size=(*shape, 5))) if name == "LSTM" else h


def tensors(library, x):
    if isinstance(x, tuple):
        return tuple(tensors(library, y) for y in x)
    return library.from_numpy(x.copy()).requires_grad_()


@needs_torch
@pytest.mark.parametrize("name,options", KINDS)
def test_states_and_gradients(name, options):
    mine, theirs = pair(name, options)
    rng = np.random.default_rng(0)
    for batch in ((3,), ()):
        x = rng.normal(size=(6, *batch, 4))
        if options.get("batch_first") and batch:
            x = x.swapaxes(0, 1)
        state = states(name, options, batch, rng)
        grads = []
        for library, layer in ((kiln, mine), (torch, theirs)):
            layer.zero_grad()
            inputs = tensors(library, (np.ascontiguousarray(x), state))
            out = layer(*inputs)
            sum((y * y.cos()).sum() for y in flat(out)).backward()
            grads.append((out, [i.grad for i in flat(inputs)], [p.grad for p in layer.parameters()]))
        agree(*grads)


@needs_torch
@pytest.mark.parametrize("name,options", KINDS)
@pytest.mark.parametrize("sorted_", [True, False])
def test_packed_sequences(name, options, sorted_):
    mine, theirs = pair(name, {k: v for k, v in options.items() if k != "batch_first"})
    rng = np.random.default_rng(1)
    lengths = sorted(LENGTHS, reverse=True) if sorted_ else LENGTHS
    x, state = rng.normal(size=(6, 4, 4)), states(name, options, (4,), rng)
    results = []
    for library, layer in ((kiln, mine), (torch, theirs)):
        rnn = library.nn.utils.rnn
        given = tensors(library, x)
        packed = rnn.pack_padded_sequence(given, lengths, enforce_sorted=sorted_)
        layer.zero_grad()
        out = []
        for hx in (None, tensors(library, state)):
            y, last = layer(packed, hx)
            assert type(y) is rnn.PackedSequence
            padded, sizes = rnn.pad_packed_sequence(y)
            assert sizes.tolist() == lengths
            out += [y.data, last, padded]
        sum((y * y.cos()).sum() for y in flat(out)).backward()
        results.append((out, given.grad, [p.grad for p in layer.parameters()]))
    agree(*results)


@needs_torch
def test_helpers():
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=(n, 2)) for n in LENGTHS]
    results = []
    for library in (kiln, torch):
        rnn = library.nn.utils.rnn
        sequences = [library.from_numpy(a.copy()) for a in arrays]
        packed = rnn.pack_sequence(sequences, enforce_sorted=False)
        padded = rnn.pad_sequence(sequences, padding_value=-1.0)
        results.append([
            *packed, padded, rnn.pad_sequence(sequences, True, 2.0, "left"),
            *rnn.pad_packed_sequence(packed, True, 7.0, 8), rnn.unpack_sequence(packed),
            rnn.unpad_sequence(rnn.pad_sequence(sequences, True), library.tensor(LENGTHS), True),
            rnn.invert_permutation(library.tensor([2, 0, 1])),
        ])  # fmt: skip
        assert packed.double() is packed and packed.float().data.dtype is library.float32
        assert packed.to(library.float32).unsorted_indices is not None and not packed.is_cuda
    agree(*results)


@needs_torch
@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    theirs = getattr(torch.nn, name)(4, 3).double()
    mine = getattr(nn, name)(4, 3).double()
    mine.load_state_dict({k: kiln.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(3)
    for batch in ((2,), ()):
        h = rng.normal(size=(*batch, 3))
        state = (h, h * 2) if name == "LSTMCell" else h
        x = rng.normal(size=(*batch, 4))
        agree(mine(*tensors(kiln, (x, state))), theirs(*tensors(torch, (x, state))))
        agree(mine(tensors(kiln, x)), theirs(tensors(torch, x)))
        with kiln.no_grad(), torch.no_grad():  # one op
            agree(mine(*tensors(kiln, (x, state))), theirs(*tensors(torch, (x, state))))
            agree(mine(tensors(kiln, x)), theirs(tensors(torch, x)))


@needs_torch
@pytest.mark.parametrize("name,options", KINDS)
def test_second_derivatives(name, options):
    mine, theirs = pair(name, options)
    x = np.random.default_rng(4).normal(size=(3, 2, 4))
    results = []
    for library, layer in ((kiln, mine), (torch, theirs)):
        inputs = [tensors(library, x), *layer.parameters()]
        out = layer(inputs[0])[0]
        first = library.autograd.grad((out * out).sum(), inputs, create_graph=True)
        second = library.autograd.grad(sum((g * g).sum() for g in first), inputs)
        results.append((first, second))
    agree(*results)


def test_what_pytorchs_classes_have_beside():
    layer = nn.LSTM(4, 3, 2, bidirectional=True, dropout=0.5)
    layer.flatten_parameters()
    assert len(layer.all_weights) == 4 and [len(w) for w in layer.all_weights] == [4] * 4
    assert layer.all_weights[0][0] is layer.weight_ih_l0 and layer.mode == "LSTM"
    assert nn.RNN(4, 3, nonlinearity="relu").mode == "RNN_RELU" and nn.GRU(1, 1).proj_size == 0
    assert layer.weight_ih_l1_reverse.shape == (12, 6)
    bound = 3**-0.5
    assert all(p.abs().max() <= bound for p in layer.parameters())
    layer.reset_parameters()
    assert all(p.abs().max() <= bound for p in layer.parameters())


def test_dropout_between_layers():
    kiln.manual_seed(0)
    layer, x = nn.GRU(4, 3, 2, dropout=0.5), kiln.ones(5, 2, 4)
    assert not kiln.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert kiln.equal(layer(x)[0], layer(x)[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        one = nn.GRU(4, 3, dropout=0.5)
    assert kiln.equal(one(x)[0], one(x)[0])


def test_errors():
    layer = nn.LSTM(4, 3)
    x = kiln.ones(5, 2, 4)
    for wrong in (
        lambda: layer(kiln.ones(4)), lambda: layer(kiln.ones(5, 2, 3)), lambda: layer(x[:0]),
        lambda: layer(x, (kiln.ones(1, 2, 4), kiln.ones(1, 2, 3))),
        lambda: layer(x, (kiln.ones(1, 3), kiln.ones(1, 3))),
        lambda: layer(kiln.ones(5, 4), (kiln.ones(1, 1, 3), kiln.ones(1, 1, 3))),
        lambda: nn.GRUCell(4, 3)(kiln.ones(2, 3)), lambda: nn.GRUCell(4, 3)(kiln.ones(2, 4), kiln.ones(3)),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError)):
            wrong()
    with pytest.raises(TypeError):
        layer(x, kiln.ones(1, 2, 3))
    rnn = nn.utils.rnn
    for wrong in (
        lambda: rnn.pack_padded_sequence(x, [1, 2]), lambda: rnn.pack_padded_sequence(x, [6, 2]),
        lambda: rnn.pack_padded_sequence(x, [2, 0]), lambda: rnn.pack_padded_sequence(x, [2]),
        lambda: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [2, 1]), total_length=1),
        lambda: rnn.pad_sequence([]), lambda: rnn.pad_sequence([x], padding_side="up"),
        lambda: layer(rnn.PackedSequence(kiln.ones(3, 4), kiln.tensor([1, 2]))),
        lambda: layer(rnn.PackedSequence(kiln.ones(3, 4), kiln.tensor([2, 2]))),
        lambda: rnn.pad_packed_sequence(rnn.PackedSequence(kiln.ones(3, 4), kiln.tensor([-1, 4]))),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError)):
            wrong()
    with pytest.raises(TypeError):
        rnn.pad_packed_sequence(x)


def test_a_recurrent_layer_learns():
    kiln.manual_seed(0)
    layer, head = nn.LSTM(1, 8), nn.Linear(8, 1)
    optimizer = kiln.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.05)
    x = kiln.rand(6, 16, 1)
    target = x.sum(0)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(layer(x)[1][0][0]), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
