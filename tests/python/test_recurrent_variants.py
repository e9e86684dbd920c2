"""RNN, LSTM and GRU in Burn's variants, beside loops in NumPy: clipped states, coupled gates, a reset
gate before the product, other activations."""

import numpy as np
import pytest

import kiln
from kiln import nn

ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "identity": lambda x: x,
}
VARIANTS = [
    ("RNN", {"clip": 0.3}),
    ("RNN", {"hidden_activation": "softsign"}),
    ("RNN", {"nonlinearity": "relu", "clip": 0.5}),
    ("GRU", {"reset_after": False}),
    ("GRU", {"reset_after": False, "clip": 0.2, "gate_activation": "hardsigmoid", "hidden_activation": "relu"}),
    ("LSTM", {"clip": 0.2}),
    ("LSTM", {"input_forget": True}),
    ("LSTM", {"gate_activation": "hardsigmoid", "cell_activation": "softsign", "hidden_activation": "identity"}),
    ("LSTM", {"input_forget": True, "clip": 0.4, "proj_size": 3, "hidden_activation": "hardtanh"}),
    *[("RNN", {"hidden_activation": name}) for name in ("sigmoid", "softplus", "elu", "leaky_relu", "silu")],
]


def step(kind, o, w, x, h, c):
    """One step of a direction: the next hidden and cell state."""

    def clipped(s):
        return np.clip(s, -o["clip"], o["clip"]) if o.get("clip") else s

    gate = ACTIVATIONS[o.get("gate_activation", "sigmoid")]
    hidden = ACTIVATIONS[o.get("hidden_activation", o.get("nonlinearity", "tanh"))]
    xs = w["weight_ih"] @ x + w["bias_ih"]
    if kind == "RNN":
        return clipped(hidden(xs + w["weight_hh"] @ h + w["bias_hh"])), c
    if kind == "GRU":
        u_r, u_z, u_n = np.split(w["weight_hh"], 3)
        b_r, b_z, b_n = np.split(w["bias_hh"], 3)
        x_r, x_z, x_n = np.split(xs, 3)
        r, z = gate(x_r + u_r @ h + b_r), gate(x_z + u_z @ h + b_z)
        n = hidden(x_n + (r * (u_n @ h + b_n) if o.get("reset_after", True) else u_n @ (r * h) + b_n))
        return clipped((1 - z) * n + z * h), c
    i, f, g, out = np.split(xs + w["weight_hh"] @ h + w["bias_hh"], 4)
    i, out = gate(i), gate(out)
    f = 1 - i if o.get("input_forget") else gate(f)
    c = clipped(f * c + i * ACTIVATIONS[o.get("cell_activation", "tanh")](g))
    h = out * hidden(c)
    return (w["weight_hr"] @ h if "weight_hr" in w else h), c


def by_loop(kind, o, layer, x, h, c):
    """x [T, N, I], h and c [layers * directions, N, H] -> all hidden states, the last of each."""
    last = []
    for depth in range(layer.num_layers):
        sides = []
        for d in range(2 if layer.bidirectional else 1):
            end = f"_l{depth}" + ("_reverse" if d else "")
            w = {n[: -len(end)]: p.detach().numpy() for n, p in layer.named_parameters() if n.endswith(end)}
            row = len(last)
            out = np.zeros((x.shape[0], x.shape[1], h.shape[2]))
            ends = []
            for n in range(x.shape[1]):
                hn, cn = h[row, n], c[row, n]
                for t in range(x.shape[0])[:: -1 if d else 1]:
                    hn, cn = step(kind, o, w, x[t, n], hn, cn)
                    out[t, n] = hn
                ends.append((hn, cn))
            last.append(ends)
            sides.append(out)
        x = np.concatenate(sides, axis=-1)
    return x, np.array([[e[0] for e in row] for row in last]), np.array([[e[1] for e in row] for row in last])


def make(kind, options, **more):
    return getattr(nn, kind)(4, 5, **options, **more, dtype=kiln.float64)


def run(layer, x, h, c):
    state = (h, c) if isinstance(layer, nn.LSTM) else h
    out, last = layer(x, state)
    return (out, *last) if isinstance(last, tuple) else (out, last)


@pytest.mark.parametrize("kind,options", VARIANTS)
@pytest.mark.parametrize("more", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}])
def test_a_variant_is_its_loop(kind, options, more):
    rng = np.random.default_rng(0)
    layer = make(kind, options, **more)
    rows = 4 if more else 1
    x = rng.normal(size=(6, 3, 4))
    h = rng.normal(size=(rows, 3, options.get("proj_size", 5)))
    c = rng.normal(size=(rows, 3, 5))
    given = x.swapaxes(0, 1) if more else x
    got = run(layer, *(kiln.from_numpy(np.ascontiguousarray(v)) for v in (given, h, c)))
    want = by_loop(kind, options, layer, x, h, c)
    if more:
        want = (want[0].swapaxes(0, 1), *want[1:])
    for mine, theirs in zip(got, want):
        np.testing.assert_allclose(mine.detach().numpy(), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind,options", VARIANTS[:9])
def test_packed_sequences_of_a_variant_are_its_sequences(kind, options):
    from kiln.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    layer = make(kind, options, bidirectional=True)
    lengths = [5, 3, 1]
    x = kiln.randn(5, 3, 4, dtype=kiln.float64)
    out, state = layer(pack_padded_sequence(x, lengths))
    out, _ = pad_packed_sequence(out)
    hidden = state[0] if kind == "LSTM" else state
    for n, length in enumerate(lengths):
        alone, last = layer(x[:length, n])
        np.testing.assert_allclose(out[:length, n].detach(), alone.detach(), atol=1e-12)
        last = last[0] if kind == "LSTM" else last
        np.testing.assert_allclose(hidden[:, n].detach(), last.detach(), atol=1e-12)


@pytest.mark.parametrize("kind,options", VARIANTS[:9])
def test_gradients_of_a_variant(kind, options):
    layer = make(kind, options)
    x = kiln.randn(4, 2, 4, dtype=kiln.float64, requires_grad=True)
    assert kiln.autograd.gradcheck(lambda v: layer(v)[0], (x,))
    layer(x)[0].sum().backward()
    if options.get("input_forget"):
        assert float(layer.weight_ih_l0.grad[5:10].abs().max()) == 0


def test_plain_layers_are_what_they_were():
    assert repr(nn.LSTM(2, 3)) == "LSTM(2, 3)"
    assert list(make("LSTM", {"input_forget": True, "clip": 1}).state_dict()) == list(make("LSTM", {}).state_dict())
    assert repr(nn.LSTM(2, 3, clip=0.5, input_forget=True)) == "LSTM(2, 3, clip=0.5, input_forget=True)"
    assert repr(nn.GRU(2, 3, reset_after=False)) == "GRU(2, 3, reset_after=False)"
    assert repr(nn.RNN(2, 3, hidden_activation="elu")) == "RNN(2, 3, hidden_activation=elu)"


def test_options_that_make_no_sense():
    for clip in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="LSTM: clip must be positive"):
            nn.LSTM(2, 3, clip=clip)
    with pytest.raises(ValueError, match="GRU: unknown gate_activation 'no'; expected one of tanh"):
        nn.GRU(2, 3, gate_activation="no")
    layer = nn.GRU(2, 3)
    layer.hidden_activation = "what"
    with pytest.raises(ValueError, match="unknown hidden_activation"):
        layer(kiln.ones(1, 1, 2))
