"""Mixed precision beside PyTorch's on the CPU: the dtype of every op, training, loss scaling."""

import os
import pickle
import warnings

import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, Table, as_tensor, dtype_name, evaluate

LOWER = ["bfloat16", "float16"]

# Ops whose results have other dtypes than PyTorch's: (names, dtypes of the operands, reason).
DEVIATIONS = [
    ("linalg.pinv", ["float32"], "one function, computed in float32 as its parts are"),
    ("nn.functional.mse_loss nn.functional.l1_loss nn.functional.multilabel_soft_margin_loss",
     LOWER, "losses are float32, with a weight too"),
    ("complex mul", ["float16"], "there are no complex halves"),
]


def outcome(case, inputs, library, lower):
    library.manual_seed(0)
    try:
        with library.autocast("cpu", dtype=getattr(library, lower)):
            results = evaluate(case, [as_tensor(x, library) for x in inputs], library)
    except Exception as error:
        return error
    return [dtype_name(x) for x in results]


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"SKIPPED: {PROGRAM} is not built")
@pytest.mark.parametrize("lower", LOWER)
def test_every_op_has_pytorchs_dtype(lower):
    import torch

    warnings.simplefilter("ignore")
    table = Table()
    known = {(n, d) for names, dtypes, _ in DEVIATIONS for n in names.split() for d in dtypes}
    failures, happened, compared = [], set(), 0
    for case in table.cases:
        kinds = case["inputs"] or []
        if case["peer_why"] or "real" not in kinds:
            continue
        base = table.inputs(case, case["dtypes"][0])
        for dtype in ("float32", lower, "float64"):
            inputs = [
                x.to(getattr(kiln, dtype)) if kind in ("real", "constant") else x
                for x, kind in zip(base, kinds)
            ]
            theirs = outcome(case, inputs, torch, lower)
            if isinstance(theirs, Exception):
                continue
            mine = outcome(case, inputs, kiln, lower)
            compared += 1
            if mine != theirs:
                happened.add((case["name"], dtype))
                if (case["name"], dtype) not in known:
                    failures.append(f"{case['python']} of {dtype}: {mine!r}, expected {theirs}")
    assert compared > 1500
    assert not failures, f"{len(failures)} deviations:\n" + "\n".join(failures)
    for names, dtypes, _ in DEVIATIONS:
        assert lower not in dtypes or happened & {(n, d) for n in names.split() for d in dtypes}, names


def copied(model, library):
    """The parameters of `model`, of either library, as tensors of `library`."""
    return {k: as_tensor(x.detach(), library) for k, x in model.state_dict().items()}


def twins(make, lib=kiln):
    """A model and PyTorch's with the same parameters."""
    import torch

    kiln.manual_seed(1)
    mine, theirs = make(kiln), make(torch)
    theirs.load_state_dict(copied(mine, torch))
    return mine, theirs


MODULES = [
    ("Linear", lambda L: L.nn.Linear(6, 5), (4, 6)),
    ("Linear, twice", lambda L: L.nn.Sequential(L.nn.Linear(6, 5), L.nn.GELU(), L.nn.Linear(5, 3)), (4, 6)),
    ("conv", lambda L: L.nn.Sequential(L.nn.Conv2d(3, 4, 3), L.nn.BatchNorm2d(4), L.nn.ReLU(), L.nn.MaxPool2d(2)), (2, 3, 8, 8)),
    ("norms", lambda L: L.nn.Sequential(L.nn.Linear(6, 8), L.nn.LayerNorm(8), L.nn.Linear(8, 4)), (4, 6)),
    ("MultiheadAttention", lambda L: L.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
    ("PReLU", lambda L: L.nn.Sequential(L.nn.Conv1d(3, 4, 3), L.nn.PReLU()), (2, 3, 7)),
]


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@pytest.mark.parametrize("name, make, shape", MODULES, ids=[m[0] for m in MODULES])
@pytest.mark.parametrize("lower", LOWER)
def test_modules(name, make, shape, lower):
    import torch

    mine, theirs = twins(make)
    x = kiln.randn(*shape)
    found = []
    for library, model in ((kiln, mine), (torch, theirs)):
        data = as_tensor(x, library).requires_grad_()
        with library.autocast("cpu", dtype=getattr(library, lower)):
            out = model(data)
            loss = library.nn.functional.mse_loss(out, library.zeros_like(out))
        loss.backward()
        gradients = [p.grad for p in model.parameters()] + [data.grad]
        assert all(str(g.dtype).endswith("float32") for g in gradients)
        found.append((dtype_name(out), dtype_name(loss), loss.item(), [g.norm().item() for g in gradients]))
    assert found[0][:2] == found[1][:2]
    tolerance = 0.03 if lower == "bfloat16" else 0.004
    assert found[0][2] == pytest.approx(found[1][2], rel=tolerance)
    assert found[0][3] == pytest.approx(found[1][3], rel=4 * tolerance, abs=2e-3)


def gpt(L):
    class Attention(L.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv = L.nn.Linear(width, 3 * width)
            self.proj = L.nn.Linear(width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(c, 2)
            q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
            y = L.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).reshape(b, t, c))

    class Layer(L.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.ln_1, self.ln_2 = L.nn.LayerNorm(width), L.nn.LayerNorm(width)
            self.attn = Attention(width, heads)
            self.up, self.down = L.nn.Linear(width, 4 * width), L.nn.Linear(4 * width, width)

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.down(L.nn.functional.gelu(self.up(self.ln_2(x))))

    class GPT(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = L.nn.Embedding(16, 32), L.nn.Embedding(12, 32)
            self.layers = L.nn.ModuleList([Layer(32, 4), Layer(32, 4)])
            self.head = L.nn.Linear(32, 16, bias=False)

        def forward(self, words):
            x = self.table(words) + self.places(L.arange(words.shape[1]))
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    return GPT()


def cnn(L):
    nn = L.nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 10),
    )


def train(library, model, inputs, targets, lower, steps, scaler=None):
    """The losses under autocast."""
    optimizer = library.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with library.autocast("cpu", dtype=getattr(library, lower)):
            out = model(inputs)
            loss = library.nn.functional.cross_entropy(out.flatten(0, -2), targets.flatten())
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize("make", [gpt, cnn])
def test_training(make, lower):
    import torch

    mine, theirs = twins(make)
    kiln.manual_seed(2)
    if make is gpt:
        inputs = kiln.randint(0, 16, (4, 12))
        targets = (inputs + 1) % 16
    else:
        inputs, targets = kiln.randn(8, 1, 12, 12), kiln.randint(0, 10, (8,))
    scalers = [
        L.amp.GradScaler("cpu", init_scale=256.0) if lower == "float16" else None
        for L in (kiln, torch)
    ]
    ours = train(kiln, mine, inputs, targets, lower, 20, scalers[0])
    other = train(
        torch, theirs, as_tensor(inputs, torch), as_tensor(targets, torch), lower, 20, scalers[1]
    )
    assert ours[-1] < 0.75 * ours[0]
    assert ours == pytest.approx(other, rel=0.06 if lower == "bfloat16" else 0.01, abs=0.01)
    assert all(p.dtype is kiln.float32 and p.grad.dtype is kiln.float32 for p in mine.parameters())


def test_regions_nest_and_end(lib):
    a = lib.ones(2, 2)
    state = lambda: (lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"))
    assert state() == (False, lib.bfloat16)
    with lib.autocast("cpu", dtype=lib.float16):
        assert (a @ a).dtype == lib.float16 and state() == (True, lib.float16)
        with lib.autocast("cpu", enabled=False):
            assert (a @ a).dtype == lib.float32 and not lib.is_autocast_enabled("cpu")
            with lib.autocast("cpu", dtype=lib.bfloat16):
                assert (a @ a).dtype == lib.bfloat16
        assert (a @ a).dtype == lib.float16
        with pytest.raises(ValueError):
            with lib.autocast("cpu", dtype=lib.bfloat16):
                raise ValueError
        assert (a @ a).dtype == lib.float16
    assert (a @ a).dtype == lib.float32 and state() == (False, lib.bfloat16)

    @lib.autocast("cpu", dtype=lib.bfloat16)
    def product(x, *, y):
        """Its own words."""
        return x @ y

    assert product(a, y=a).dtype == lib.bfloat16 and product.__doc__ == "Its own words."
    assert (a @ a).dtype == lib.float32
    with lib.amp.autocast("cpu"):
        assert (a @ a).dtype == lib.bfloat16
        assert (a.double() @ a.double()).dtype == lib.float64
        assert lib.cat([a, a.bfloat16()]).dtype == lib.float32
        assert lib.cat([a.bfloat16(), a.bfloat16()]).dtype == lib.bfloat16
        assert (a.bfloat16() + a).dtype == lib.float32


def test_wrong_calls(lib):
    with pytest.raises(ValueError, match="device_type"):
        lib.autocast(3)
    with pytest.raises(RuntimeError):
        lib.autocast("nowhere")
    with pytest.raises(TypeError, match="callable|function"):
        lib.autocast("cpu")(3)
    with pytest.warns(UserWarning, match="isabling"):
        region = lib.autocast("cpu", dtype=lib.float64)
    with region:
        assert (lib.ones(2, 2) @ lib.ones(2, 2)).dtype == lib.float32
    assert lib.amp.is_autocast_available("cpu") and lib.amp.is_autocast_available("cuda")


def test_a_parameter_is_cast_once_and_anew_after_a_write():
    layer = kiln.nn.Linear(64, 64)
    x = kiln.ones(1, 64, dtype=kiln.bfloat16)
    used = lambda: kiln.memory_stats()["bytes_in_use"]
    with kiln.autocast("cpu"):
        layer(x)
        before = used()
        for _ in range(3):
            first = layer(x)
        assert used() - before < 64 * 64  # no other copy of the weight
        with kiln.no_grad():
            layer.weight.zero_()
            layer.bias.zero_()
        assert layer(x).abs().max() == 0  # it sees the write
        with kiln.no_grad():
            assert not layer(x).requires_grad
        one, two = layer(x).sum(), layer(x).sum()  # recorded after a use that was not
        one.backward()
        two.backward()  # each graph has a cast of its own
    assert layer.weight.grad.tolist()[0][:2] == [2, 2] and first.dtype is kiln.bfloat16
    with kiln.autocast("cpu", cache_enabled=False):
        assert not kiln.is_autocast_cache_enabled()
        layer(x)


def test_threads_are_apart():
    import threading

    seen = []

    def product():
        seen.append((kiln.ones(2, 2) @ kiln.ones(2, 2)).dtype)

    with kiln.autocast("cpu"):
        thread = threading.Thread(target=product)
        thread.start()
        thread.join()
    assert seen == [kiln.float32]


def test_custom_functions(lib):
    seen = []

    class Product(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append(grad.mm(b.t()).dtype)
            return grad.mm(b.t()).to(a.dtype), a.t().mm(grad).to(b.dtype)

    class Exact(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", cast_inputs=lib.float32)
        def forward(ctx, a):
            seen.append((a.dtype, (a @ a).dtype))
            return a * 2

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad * 2

    a = lib.ones(2, 2, requires_grad=True)
    with lib.autocast("cpu", dtype=lib.bfloat16):
        y = Product.apply(a, a)
        z = Exact.apply(y)
    assert y.dtype == lib.bfloat16 and z.dtype == lib.float32
    z.sum().backward()
    assert seen == [(lib.float32, lib.float32), lib.bfloat16]
    assert a.grad.dtype == lib.float32 and a.grad.tolist() == [[8, 8], [8, 8]]
    Product.apply(a, a).sum().backward()
    assert seen[-1] == lib.float32


def test_checkpoints_run_again_in_their_region():
    layer = kiln.nn.Linear(4, 4)
    seen = []

    def run(x):
        y = layer(x)
        seen.append(y.dtype)
        return y

    x = kiln.ones(2, 4, requires_grad=True)
    with kiln.autocast("cpu"):
        y = kiln.utils.checkpoint.checkpoint(run, x, use_reentrant=False)
    y.sum().backward()
    assert seen == [kiln.bfloat16, kiln.bfloat16] and layer.weight.grad.dtype is kiln.float32


# ---- GradScaler


def scaled_run(lib, infinite_at, steps, **options):
    """Scales, trackers and weights over some steps, with an infinite gradient at one of them."""
    w = lib.tensor([1.0, -2.0], requires_grad=True)
    v = lib.tensor([0.5], requires_grad=True)
    first, second = lib.optim.SGD([w], lr=0.1), lib.optim.Adam([v], lr=0.1)
    scaler = lib.amp.GradScaler("cpu", **options)
    history = []
    for step in range(steps):
        first.zero_grad()
        second.zero_grad()
        loss = (w * w).sum() * (float("inf") if step in infinite_at else 1.0)
        other = (v * v).sum()
        for part in scaler.scale([loss, other]):
            part.backward()
        scaler.unscale_(first)
        lib.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(first)
        scaler.step(second)
        scaler.update()
        history.append((scaler.get_scale(), scaler._get_growth_tracker(), w.tolist(), v.tolist()))
    return scaler, history


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@pytest.mark.parametrize(
    "infinite_at, options",
    [
        ((), {}),
        ((2,), {"init_scale": 1024.0, "growth_interval": 3}),
        ((0, 1, 5), {"init_scale": 3.0, "growth_factor": 1.7, "backoff_factor": 0.3, "growth_interval": 2}),
        ((1,), {"init_scale": 1e38, "growth_interval": 1}),
    ],
)
def test_scales_are_pytorchs(infinite_at, options):
    import torch

    mine, ours = scaled_run(kiln, infinite_at, 8, **options)
    theirs, other = scaled_run(torch, infinite_at, 8, **options)
    for a, b in zip(ours, other):
        assert a[:2] == b[:2]
        assert a[2] == pytest.approx(b[2], rel=1e-5) and a[3] == pytest.approx(b[3], rel=1e-5)
    assert mine.state_dict() == theirs.state_dict()
    again = kiln.amp.GradScaler("cpu")
    again.load_state_dict(theirs.state_dict())
    assert again.state_dict() == theirs.state_dict()
    assert pickle.loads(pickle.dumps(mine)).state_dict() == mine.state_dict()


def test_scaler_refuses_what_pytorch_refuses(lib):
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError, match="factor"):
            lib.amp.GradScaler("cpu", **wrong)
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.1)
    scaler = lib.amp.GradScaler("cpu")
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError):
            call()
    loss = scaler.scale(w.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)  # no gradients
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler = lib.amp.GradScaler("cpu")
    loss = scaler.scale(w.sum())
    loss.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: loss)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(RuntimeError, match="empty"):
        scaler.load_state_dict({})
    with pytest.raises(ValueError):
        scaler.scale([1.0])
    half = lib.ones(2, dtype=lib.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(lib.optim.SGD([half], lr=0.1))
    scaler.update(8.0)
    assert scaler.get_scale() == 8.0
    scaler.update(lib.tensor(4.0))
    assert scaler.get_scale() == 4.0
    off = lib.amp.GradScaler("cpu", enabled=False)
    assert off.scale(loss) is loss and off.state_dict() == {} and off.get_scale() == 1.0


RECURRENT = ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"]


def dtypes_of(value):
    if isinstance(value, tuple) and not hasattr(value, "batch_sizes"):
        return [name for part in value for name in dtypes_of(part)]
    return [dtype_name(getattr(value, "data", value))]


def recurrent_dtypes(lib, name, packed, lower):
    """The dtypes of a recurrent layer's results in a region, and of its gradients."""
    layer = getattr(lib.nn, name)(2, 3)
    x = lib.ones(1, 2) if name.endswith("Cell") else lib.ones(4, 2, 2)
    if lower:
        x = x.to(lib.bfloat16)
    if packed:
        x = lib.nn.utils.rnn.pack_padded_sequence(x, lib.tensor(packed))
    with lib.autocast("cpu", lib.bfloat16):
        first = layer(x)
        y = layer(x, first if name.endswith("Cell") else first[1])
    y = y[0] if isinstance(y, tuple) else y
    (y.data if packed else y).sum().backward()
    return dtypes_of(first) + dtypes_of(y), [dtype_name(p.grad) for p in layer.parameters()]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("packed", [None, [4, 4], [4, 2]])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_give_pytorchs_dtypes(name, packed, lower):
    if packed and name.endswith("Cell"):
        pytest.skip("cells take no packed sequences")
    got = recurrent_dtypes(kiln, name, packed, lower)
    if name == "LSTM" and not packed:
        assert set(got[0]) == {"bfloat16"} and set(got[1]) == {"float32"}
    if HAS_TORCH:
        import torch

        assert got == recurrent_dtypes(torch, name, packed, lower)


@pytest.mark.parametrize("recorded", [False, True])
def test_cells_multiply_their_input_in_the_regions_dtype(recorded):
    kiln.manual_seed(0)
    cell = kiln.nn.GRUCell(64, 4)
    x, h, low = kiln.randn(3, 64), kiln.randn(3, 4), kiln.bfloat16
    with kiln.set_grad_enabled(recorded):
        product = kiln.nn.functional.linear(x.to(low), cell.weight_ih.to(low), cell.bias_ih.to(low))
        by_input, by_state = product.float().chunk(3, 1), (h @ cell.weight_hh.mT + cell.bias_hh).chunk(3, 1)
        r, z = ((by_input[i] + by_state[i]).sigmoid() for i in (0, 1))
        n = (by_input[2] + r * by_state[2]).tanh()
        with kiln.autocast("cpu", low):
            y = cell(x, h)
        assert kiln.allclose(y, (1 - z) * n + z * h, rtol=0, atol=1e-6)
        assert (y - cell(x, h)).abs().max() > 1e-5


def test_recurrent_layers_outside_of_regions_keep_float32():
    layer = kiln.nn.LSTM(2, 3)
    x = kiln.randn(4, 1, 2)
    plain, (h, c) = layer(x)
    assert plain.dtype == h.dtype == c.dtype == kiln.float32
    with kiln.autocast("cpu", kiln.bfloat16):
        y, _ = layer(input=x)
    assert kiln.allclose(y.float(), plain, atol=1e-2)
