"""kiln.compile: what is compiled computes what eager code does, bit for bit."""

import copy
import gc
import pickle
import warnings
import weakref

import pytest

import kiln
import kiln.nn.functional as F
import layer_cases
import model_reference as reference
from kiln import models, nn


def equal(a, b):
    same = a.shape == b.shape and a.dtype == b.dtype
    return same and bool(((a == b) | (a != a) & (b != b)).all())


def batches(*shapes, count=20):
    kiln.manual_seed(3)
    return [tuple(kiln.randn(*shape) for shape in shapes) for _ in range(count)]


def train(make_step, net, data, make_optimizer):
    optimizer = make_optimizer(net.parameters())
    step = make_step(net, optimizer)
    kiln.manual_seed(11)
    losses = [float(step(*batch)) for batch in data]
    state = [p.detach() for p in net.parameters()] + list(net.buffers())
    state += [p.grad for p in net.parameters() if p.grad is not None]
    return losses, state, step


def check_training(net, data, loss_of, make_optimizer):
    twin = copy.deepcopy(net)

    def make(compiled):
        def make_step(net, optimizer):
            def step(*batch):
                optimizer.zero_grad()
                loss = loss_of(net, *batch)
                loss.backward()
                optimizer.step()
                return loss

            return kiln.compile(step, fullgraph=True) if compiled else step

        return make_step

    losses, state, _ = train(make(False), net, data, make_optimizer)
    compiled_losses, compiled_state, step = train(make(True), twin, data, make_optimizer)
    assert compiled_losses == losses
    assert len(state) == len(compiled_state)
    assert all(equal(a, b) for a, b in zip(state, compiled_state, strict=True))
    assert step.counts() == {
        "variants": 1,
        "captured": 1,
        "replayed": len(data) - 1,
        "eager": 0,
    }


def test_training_step_of_an_mlp():
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
    check_training(
        net,
        batches((5, 6), (5, 3)),
        lambda net, x, y: F.mse_loss(net(x), y),
        lambda params: kiln.optim.AdamW(params, lr=0.01),
    )


def test_training_step_of_a_cnn_with_dropout():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5),
        nn.Flatten(), nn.Linear(36, 3),
    )  # fmt: skip
    check_training(
        net,
        batches((4, 1, 8, 8), (4, 3)),
        lambda net, x, y: F.cross_entropy(net(x), y.softmax(1)),
        lambda params: kiln.optim.SGD(params, lr=0.05, momentum=0.9),
    )


def test_training_step_of_a_small_gpt():
    config = models.GPT2Config(**{**reference.GPT2})
    net = models.GPT2LMHeadModel(config)
    ids = [(kiln.randint(0, config.vocab_size, (2, 7)),) for _ in range(20)]

    def loss_of(net, ids):
        logits = net(ids).logits
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))

    check_training(net, ids, loss_of, lambda params: kiln.optim.AdamW(params, lr=1e-3))


def test_training_step_of_an_lstm():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 6, batch_first=True)
            self.out = nn.Linear(6, 4)

        def forward(self, x):
            return self.out(self.lstm(x)[0])

    check_training(
        Net(),
        batches((3, 5, 4)),
        lambda net, x: F.mse_loss(net(x), x),
        lambda params: kiln.optim.RMSprop(params, lr=0.01),
    )


def test_a_step_with_second_derivatives_inside():
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))

    def residual(net, points):
        x = points.detach().requires_grad_()
        u = net(x)
        du = kiln.autograd.grad(u.sum(), x, create_graph=True)[0]
        ddu = kiln.autograd.grad(du.sum(), x, create_graph=True)[0]
        return (ddu + u).square().mean()

    check_training(
        net, batches((20, 1)), residual, lambda params: kiln.optim.Adam(params, lr=0.01)
    )


def test_gradients_accumulate_and_go_to_leaves():
    net = nn.Linear(4, 2)
    twin = copy.deepcopy(net)

    def accumulate(net):
        def run(x):
            net(x).square().sum().backward()

        return run

    eager, compiled = accumulate(net), kiln.compile(accumulate(twin))
    for i in range(5):
        x = kiln.randn(3, 4)
        eager(x)
        compiled(x)
        assert equal(net.weight.grad, twin.weight.grad)
        if i == 3:
            net.zero_grad()
            twin.zero_grad()


def test_schedules_go_on_in_replays():
    net = nn.Linear(2, 1)
    optimizer = kiln.optim.SGD(net.parameters(), lr=1.0)
    schedule = kiln.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @kiln.compile
    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        schedule.step()

    for _ in range(4):
        step(kiln.ones(1, 2))
    assert optimizer.param_groups[0]["lr"] == 1 / 16
    assert step.counts()["replayed"] == 3


@pytest.mark.parametrize("name, options, size", reference.VISION)
def test_vision_models(name, options, size):
    model = getattr(models, name)(num_classes=5, **options).eval()
    compiled = kiln.compile(model, fullgraph=True)
    for seed in (1, 2):
        kiln.manual_seed(seed)
        x = kiln.randn(2, 3, size, size)
        with kiln.no_grad():
            assert equal(compiled(x), model(x))
    assert compiled.counts()["replayed"] == 1


LANGUAGE = {
    "gpt2": lambda: models.GPT2LMHeadModel(models.GPT2Config(**reference.GPT2)),
    "llama": lambda: models.LlamaForCausalLM(models.LlamaConfig(**reference.LLAMA)),
    "bert": lambda: models.BertModel(models.BertConfig(**reference.BERT)),
}


@pytest.mark.parametrize("name", LANGUAGE)
def test_language_models(name):
    model = LANGUAGE[name]().eval()
    compiled = kiln.compile(model)
    for seed in (1, 2, 3):
        kiln.manual_seed(seed)
        ids = kiln.randint(0, 20, (2, 6))
        with kiln.no_grad():
            for a, b in zip(tensors_of(compiled(ids)), tensors_of(model(ids)), strict=True):
                assert equal(a, b)
    assert compiled.counts()["replayed"] == 2, compiled.explain()


def tensors_of(value):
    if isinstance(value, kiln.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return []
    return [t for item in value for t in tensors_of(item)]


def test_arguments_of_every_kind():
    @kiln.compile
    def f(xs, scale=1.0, *, names=("a",), flag=False):
        out = {name: x * scale for name, x in zip(names, xs, strict=False)}
        return (out, [flag, None]) if flag else out

    x, y = kiln.randn(3), kiln.randn(3)
    for _ in range(2):
        assert equal(f([x, y])["a"], x)
        assert equal(f([x, y], 2.0)["a"], x * 2.0)
        out, rest = f((x, y), scale=3.0, names=("p", "q"), flag=True)
        assert equal(out["q"], y * 3.0) and rest == [True, None]
    assert f.counts() == {"variants": 3, "captured": 3, "replayed": 3, "eager": 0}


def test_what_a_function_finds_outside_is_watched():
    scale = 2.0
    weight = kiln.ones(3)

    def f(x):
        return x * scale + weight

    g = kiln.compile(f)
    x = kiln.randn(3)
    assert equal(g(x), f(x))
    scale = 5.0
    assert equal(g(x), f(x))
    weight = kiln.zeros(3)
    assert equal(g(x), f(x))
    weight.add_(4)  # in place: the same tensor
    assert equal(g(x), f(x))
    assert g.counts()["captured"] == 3


def test_modules_are_watched():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    fast = kiln.compile(net)

    def check(captured):
        x = kiln.randn(3, 4)
        kiln.manual_seed(1)
        expected = net(x)
        kiln.manual_seed(1)
        assert equal(fast(x), expected)
        assert fast.counts()["captured"] == captured

    check(1)
    check(1)
    net.eval()
    check(2)
    net[0].weight = nn.Parameter(kiln.randn(4, 4))
    check(3)
    net[1].p = 0.25
    net.train()
    check(4)
    with kiln.no_grad():
        check(5)
    net.double().float()
    check(6)


def test_hooks_are_called():
    net = nn.Linear(3, 3)
    net.compile()
    seen = []
    net.register_forward_hook(lambda module, args, out: seen.append(1) or out * 2)
    x = kiln.randn(2, 3)
    for _ in range(3):
        assert equal(net(x), F.linear(x, net.weight, net.bias) * 2)
    assert len(seen) == 3
    assert list(net.state_dict()) == ["weight", "bias"]
    inner = nn.Sequential(nn.Linear(3, 3))
    inner[0].register_forward_hook(lambda module, args, out: out + 1)
    fast = kiln.compile(inner)
    for _ in range(3):
        assert equal(fast(x), inner(x))


def test_values_that_are_read():
    @kiln.compile(fullgraph=True)
    def strict(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match=r"bool_into_data.*line \d+ of .*test_compile.py"):
        strict(kiln.ones(3))

    @kiln.compile
    def lenient(x):
        return x + 1 if x.sum() > 0 else x - 1

    for v in (1.0, 2.0, -1.0, 3.0, -2.0):
        x = kiln.full((2,), v)
        assert equal(lenient(x), x + 1 if v > 0 else x - 1)
    assert lenient.counts()["replayed"] == 3

    @kiln.compile(options={"max_variants": 2})
    def changing(x):
        return x * x.sum().item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for v in range(1, 6):
            x = kiln.full((2,), float(v))
            assert equal(changing(x), x * x.sum())
    assert changing.counts()["eager"] >= 3 and "another value" in changing.explain()

    host = kiln.compile(lambda x: kiln.from_numpy(x.numpy() * 2))
    for v in range(3):
        assert equal(host(kiln.full((2,), float(v))), kiln.full((2,), 2.0 * v))
    assert "eager: capture:" in host.explain()


def test_too_many_variants_are_eager_and_said_once():
    f = kiln.compile(lambda x: x * 2, options={"max_variants": 2})
    with pytest.warns(UserWarning, match="variants"):
        for n in range(1, 6):
            assert equal(f(kiln.ones(n)), kiln.full((n,), 2.0))
    assert f.counts()["variants"] == 2 and f.counts()["eager"] == 3


def test_arguments_of_compile():
    f = lambda x: x + 1  # noqa: E731
    assert kiln.compile(f, disable=True) is f
    assert kiln.compile(f, backend="eager") is f
    g = kiln.compile(f, fullgraph=True, dynamic=True, mode="max-autotune", backend="inductor")
    assert equal(g(kiln.ones(2)), kiln.full((2,), 2.0))
    assert not kiln.compiler.is_compiling()
    with pytest.raises(ValueError, match="unknown mode"):
        kiln.compile(f, mode="fast")
    with pytest.raises(ValueError, match="unknown options"):
        kiln.compile(f, options={"speed": 1})
    for budget in (-0.1, 2, "half"):
        with pytest.raises(ValueError, match="expected a memory_budget from 0 to 1"):
            kiln.compile(f, options={"memory_budget": budget})
    with pytest.raises(ValueError, match="unknown backend"):
        kiln.compile(f, backend="other")
    with pytest.raises(TypeError, match="a function or a module"):
        kiln.compile(3)


def test_methods_copies_and_pickles():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        @kiln.compile
        def forward(self, x):
            return self.fc(x).relu()

    a, b = Net(), Net()
    x = kiln.randn(4, 3)
    for net in (a, b, a, b):
        assert equal(net(x), net.fc(x).relu())
    plain = nn.Sequential(nn.Linear(3, 2))
    plain.compile()
    plain(x)
    for twin in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
        assert equal(twin(x), plain(x))
        with kiln.no_grad():
            twin[0].weight.zero_()
        assert not equal(twin(x), plain(x))


def test_what_is_compiled_is_freed():
    net = nn.Sequential(nn.Linear(3, 2))
    net.compile()
    net(kiln.randn(4, 3)).sum().backward()
    net(kiln.randn(4, 3)).sum().backward()
    seen = weakref.ref(net)
    del net
    gc.collect()
    assert seen() is None


def test_autocast_and_vmap():
    net = nn.Linear(4, 4)
    fast = kiln.compile(net)
    x = kiln.randn(3, 4)
    for _ in range(2):
        assert equal(fast(x), net(x))
        with kiln.autocast("cpu", dtype=kiln.bfloat16):
            assert equal(fast(x), net(x)) and fast(x).dtype == kiln.bfloat16
    assert equal(kiln.vmap(lambda v: fast(v))(x), kiln.vmap(lambda v: net(v))(x))


def test_large_chains_are_fused():
    def chain(x):
        for _ in range(10):
            x = (x * 1.01).sin() + x * 0.5
        return x

    f = kiln.compile(chain)
    for _ in range(2):
        x = kiln.randn(300, 500)
        assert equal(f(x), chain(x))
    assert "fused: 40 rows on [300, 500]" in f.explain()


def test_a_memory_budget_keeps_bits_and_takes_less():
    def trained(budget):
        kiln.manual_seed(3)
        layers = [nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.2), nn.LayerNorm(256), nn.Linear(256, 64)]
        net = nn.Sequential(*layers, *(copy.deepcopy(x) for x in layers))
        optimizer = kiln.optim.SGD(net.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        fast = step if budget is None else kiln.compile(step, options={"memory_budget": budget})
        losses = [fast(kiln.randn(1024, 64)).item() for _ in range(4)]
        kiln.reset_memory_stats()
        before = kiln.memory_stats()["bytes_in_use"]
        losses.append(fast(kiln.randn(1024, 64)).item())
        state = [p.tolist() for p in net.parameters()]
        peak = kiln.memory_stats()["peak_bytes_in_use"] - before
        return losses, state, peak, "" if budget is None else fast.explain()

    eager = trained(None)
    peaks = []
    for budget in (1.0, 0.0):
        losses, state, peak, text = trained(budget)
        assert losses == eager[0] and state == eager[1]
        assert ("recomputation: " in text) == (budget == 0.0)
        peaks.append(peak)
    assert peaks[1] < 0.8 * peaks[0]


LAYERS = [
    pytest.param(name, *options, id=f"{name}-{i}")
    for name, (legal, _, _) in layer_cases.CASES.items()
    for i, options in enumerate(legal)
]


@pytest.mark.parametrize("name, args, kwargs", LAYERS)
def test_layers(name, args, kwargs):
    kiln.manual_seed(2)
    layer = getattr(nn, name)(*args, **kwargs)
    twin = copy.deepcopy(layer)
    fast = kiln.compile(twin, options={"memory_budget": 0.0})
    for seed in (1, 2):
        inputs = layer_cases.CASES[name][1]()
        kiln.manual_seed(seed)
        expected = tensors_of(layer(*inputs))
        kiln.manual_seed(seed)
        got = tensors_of(fast(*inputs))
        assert len(got) == len(expected)
        assert all(equal(a, b) for a, b in zip(got, expected, strict=True))
        if expected[0].requires_grad:
            expected[0].sum().backward()
            got[0].sum().backward()
            for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
                assert (p.grad is None) == (q.grad is None)
                assert p.grad is None or kiln.allclose(p.grad, q.grad)
