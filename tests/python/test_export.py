"""kiln.export: programs of torch.export against PyTorch."""

import collections
import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

from pt2_files import export, given, operators_of, same, saved  # noqa: E402
from pt2_models import Branches, all_models  # noqa: E402
from torch.export import Dim  # noqa: E402

import kiln  # noqa: E402
import kiln.export  # noqa: E402

MODELS = all_models()


def loss_of(lib, value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return sum(loss_of(lib, x) for x in value)
    return (value * value).mean() + value.sum() * 0.01


def check_training(module, mine, args):
    """Values, gradients and the parameters after two steps are PyTorch's."""
    theirs = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    ours = kiln.optim.SGD(mine.parameters(), lr=0.05, momentum=0.9)
    for _ in range(2):
        expected = module(*args)
        found = mine(*given(args))
        same(found, expected, 1e-4, 1e-4)
        theirs.zero_grad()
        ours.zero_grad()
        loss_of(torch, expected).backward()
        loss_of(kiln, found).backward()
        gradients = dict(mine.named_parameters())
        for name, p in module.named_parameters():
            if p.grad is None:
                assert gradients[name].grad is None, name
            else:
                same(gradients[name].grad, p.grad, 1e-3, 2e-4, f"gradient of {name}")
        theirs.step()
        ours.step()
    state = mine.state_dict()
    assert list(state) == list(module.state_dict()) or set(state) == set(module.state_dict())
    for name, x in module.state_dict().items():
        same(state[name], x, 1e-3, 2e-4, name)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    module, args = MODELS[name]
    before = {k: v.clone() for k, v in module.state_dict().items()}
    program = export(module, args)
    mine = kiln.export.load(saved(program, tmp_path / "m.pt2"))
    core = kiln.export.load(saved(program.run_decompositions(), tmp_path / "core.pt2"))
    with torch.no_grad():
        expected = module(*args)
    with kiln.no_grad():
        same(core(*given(args)), expected, 1e-4, 1e-5)
        if not isinstance(expected, dict):
            compiled = kiln.compile(mine)
            for _ in range(2):
                same(compiled(*given(args)), expected, 1e-4, 1e-5)
    check_training(module, mine, args)
    module.load_state_dict(before)


@pytest.mark.parametrize("name", ["resnet", "mobilenet", "wavenet"])
def test_training_mode(name, tmp_path):
    """Batch norms by the batch's statistics, whose running ones are buffers that are written."""
    module, args = MODELS[name]
    before = {k: v.clone() for k, v in module.state_dict().items()}
    module.train()
    try:
        program = export(module, args)
        core = program.run_decompositions()
        mine = kiln.export.load(saved(program, tmp_path / "m.pt2"))
        same(dict(kiln.export.load(saved(core, tmp_path / "core.pt2")).state_dict()), dict(module.state_dict()))
        functional = kiln.export.load(tmp_path / "core.pt2")
        check_training(module, mine, args)
        after = {k: v.clone() for k, v in module.state_dict().items()}
        module.load_state_dict(before)
        check_training(module, functional, args)
        same(dict(functional.state_dict()), after, 1e-3, 2e-4)
    finally:
        module.load_state_dict(before)
        module.eval()


def test_the_tree_of_modules(tmp_path):
    module, args = MODELS["resnet"]
    mine = kiln.export.load(saved(export(module, args), tmp_path / "m.pt2"))
    text = str(mine)
    assert "(bn1): BatchNorm2d(weight=(8,), bias=(8,), running_mean=(8,)" in text
    assert "(fc): Linear(weight=(5, 16), bias=(5,))" in text and "(relu): ReLU()" in text
    assert mine.input_names == ["x"] and len(mine.output_names) == 1
    assert mine.layers._modules["0"].conv1.weight.shape == (8, 8, 3, 3)
    assert not mine.train().training is False and mine.eval().training is False


def test_a_program_goes_on_as_onnx_and_as_a_graph(tmp_path):
    import kiln.onnx

    module, args = MODELS["resnet"]
    mine = kiln.export.load(saved(export(module, args), tmp_path / "m.pt2"))
    expected = module(*args)
    kiln.onnx.export(mine, given(args), tmp_path / "m.onnx")
    same(kiln.onnx.load(tmp_path / "m.onnx")(*given(args)), expected, 1e-4, 1e-5)
    kiln.capture(mine, given(args)).save(tmp_path / "m.safetensors")
    same(kiln.load_graph(tmp_path / "m.safetensors")(*given(args)), expected, 1e-4, 1e-5)


Point = collections.namedtuple("Point", "x y")


def test_arguments_and_results_nest(tmp_path):
    class Nest(torch.nn.Module):
        def forward(self, x, d, *, n=2, flag=True, text="a", none=None):
            y = x + d["a"] * n + d["b"][0]
            return {"y": y, 3: (x, [y, None]), "n": n, "p": Point(x, y), "half": 0.5, "o": collections.OrderedDict(z=y)}

    args = (torch.ones(2), {"a": torch.ones(2), "b": [torch.ones(2)]})
    kwargs = {"n": 4, "flag": False, "text": "a", "none": None}
    torch.utils._pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    mine = kiln.export.load(saved(export(Nest(), args, kwargs), tmp_path / "m.pt2"))
    expected = Nest()(*args, **kwargs)
    found = mine(*given(args), **kwargs)
    same(found, expected)
    assert found["p"]._fields == ("x", "y")
    same(mine(*given(args)), expected)  # constants may be left out
    same(mine(given(args[0]), d=given(args[1]), n=4), expected)
    with pytest.raises(kiln.errors.ValueError, match="'n'"):
        mine(*given(args), n=5)
    with pytest.raises(kiln.errors.TypeError, match="keys a, b"):
        mine(given(args[0]), {"a": kiln.ones(2)})
    with pytest.raises(kiln.errors.TypeError, match="list of 1 items"):
        mine(given(args[0]), {"a": kiln.ones(2), "b": []})
    with pytest.raises(kiln.errors.TypeError, match="'m'"):
        mine(*given(args), m=5)
    with pytest.raises(kiln.errors.TypeError, match="missing"):
        mine(given(args[0]))
    with pytest.raises(kiln.errors.TypeError, match="must be a tensor"):
        mine(3, given(args[1]))
    with pytest.raises(kiln.errors.DTypeError, match="'x' is int64; expected float32"):
        mine(kiln.arange(2), given(args[1]))


def test_free_sizes(tmp_path):
    class Free(torch.nn.Module):
        def forward(self, x, y):
            n = x.shape[0]
            halves = x[: n // 2] + y
            return halves.reshape(-1, 2), torch.zeros(n * 2 + 1), halves.sum() / n, n, torch.arange(n) % max(n - 1, 1)

    half = Dim("half", min=2, max=10)
    x, y = torch.randn(8, 4), torch.randn(4, 4)
    program = export(Free(), (x, y), dynamic_shapes=({0: 2 * half}, {0: half}))
    mine = kiln.export.load(saved(program, tmp_path / "m.pt2"))
    for n in (2, 5, 10):
        args = torch.randn(2 * n, 4), torch.randn(n, 4)
        same(mine(*given(args)), Free()(*args))
    for sizes, message in (
        ((7, 3), "'x' has size 7 in dim 0; expected a size that its dim can take"),
        ((8, 3), "expected 6, as other inputs have it|expected 4, as other inputs have it"),
        ((22, 11), "at least 2 and at most 10"),
        ((2, 1), "at least 2"),
    ):
        with pytest.raises(kiln.errors.ShapeError, match=message):
            mine(kiln.ones(sizes[0], 4), kiln.ones(sizes[1], 4))
    with pytest.raises(kiln.errors.ShapeError, match="size 5 in dim 1; expected 4"):
        mine(kiln.ones(8, 5), kiln.ones(4, 4))
    with pytest.raises(kiln.errors.ShapeError, match="1 dims; expected 2"):
        mine(kiln.ones(8), kiln.ones(4, 4))


@pytest.mark.parametrize("name", ["resnet", "bert", "gpt", "vit", "dlrm"])
def test_free_batch(name, tmp_path):
    module, args = MODELS[name]
    args = tuple(torch.cat([x, x[:1]]) for x in args)  # 1 and 2 are special in PyTorch
    batch = Dim("batch", min=2, max=100)
    program = export(module, args, dynamic_shapes=tuple({0: batch} for _ in args))
    mine = kiln.export.load(saved(program, tmp_path / "m.pt2"))
    core = kiln.export.load(saved(program.run_decompositions(), tmp_path / "core.pt2"))
    for n in (2, 5):
        rows = torch.arange(n) % args[0].shape[0]
        some = tuple(x[rows] for x in args)
        same(mine(*given(some)), module(*some), 1e-4, 1e-5)
        same(core(*given(some)), module(*some), 1e-4, 1e-5)


def test_inputs_and_buffers_that_are_written(tmp_path):
    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))
            self.register_buffer("hidden", torch.ones(2), persistent=False)
            self.constant = torch.tensor([3.0, 4.0])

        def forward(self, x):
            self.count += x
            x[0].mul_(2)
            self.hidden.copy_(x)
            return x * self.constant + torch.tensor([1.0, 2.0])

    for decompose in (False, True):
        module, x = Writes(), torch.tensor([1.0, 2.0])
        program = export(module, (x,), decompose=decompose)
        mine = kiln.export.load(saved(program, tmp_path / f"{decompose}.pt2"))
        assert list(mine.state_dict()) == ["count"] and set(dict(mine.named_buffers())) == {"count", "hidden"}
        a, b = torch.tensor([1.0, 2.0]), kiln.tensor([1.0, 2.0])
        for _ in range(2):
            same(mine(b), module(a))
        same(b, a)
        same(mine.count, module.count)
        same(mine.hidden, module.hidden)


def test_operators_of_higher_order(tmp_path):
    module = Branches()
    path = saved(export(module, (torch.ones(2, 3),)), tmp_path / "m.pt2")
    found = operators_of(path)
    assert {"higher_order.cond", "higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast"} <= found
    mine = kiln.export.load(path)
    for x in (torch.ones(2, 3), -torch.ones(2, 3)):
        expected, result = module(x), mine(given(x))
        same(result[:3], expected[:3])
        same(result[3], expected[3], 2e-2, 2e-2)
        assert [y.requires_grad for y in result] == [y.requires_grad for y in expected]
        module.zero_grad()
        mine.zero_grad()
        (expected[0].sum() + expected[2].sum()).backward()
        (result[0].sum() + result[2].sum()).backward()
        same(mine.fc.weight.grad, module.fc.weight.grad)
    with kiln.no_grad():
        assert not any(y.requires_grad for y in mine(kiln.ones(2, 3)))
    with pytest.raises(kiln.errors.RuntimeError, match="read"):
        kiln.capture(mine, kiln.ones(2, 3))


def test_loops(tmp_path):
    from torch._higher_order_ops import map as map_, scan, while_loop

    class Loops(torch.nn.Module):
        def forward(self, x, y):
            n, z = while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 1.5 + y), (torch.zeros((), dtype=torch.int64), x))
            rows = map_(lambda a, b: (a * b).sin(), x, y)
            last, sums = scan(lambda carry, a: (carry + a, carry * a), y, x)
            return n, z, rows, last, sums

    args = torch.randn(4, 3), torch.randn(3)
    path = saved(export(Loops(), args), tmp_path / "m.pt2")
    assert {"higher_order.while_loop", "higher_order.map_impl", "higher_order.scan"} <= operators_of(path)
    mine = kiln.export.load(path)
    same(mine(*given(args)), Loops()(*args))


def test_values_that_become_sizes(tmp_path):
    class Sizes(torch.nn.Module):
        def forward(self, x, n):
            k = n.item()
            torch._check(k >= 1)
            torch._check(k <= 5)
            found = x.nonzero()
            torch._assert_async(x.sum() < 100, "too much")
            return torch.zeros(k), found, x[x > 0], x[:k]

    args = torch.tensor([1.0, -2.0, 0.0, 3.0, 4.0, 5.0]), torch.tensor(3)
    program = export(Sizes(), args)
    for one in (program, program.run_decompositions()):
        mine = kiln.export.load(saved(one, tmp_path / "m.pt2"))
        same(mine(*given(args)), Sizes()(*args))
        with pytest.raises(kiln.errors.ValueError, match="assertion of the program|excludes"):
            mine(given(args[0]), kiln.tensor(9))
        with pytest.raises(kiln.errors.ValueError, match="assertion of the program does not hold: too much"):
            mine(kiln.ones(6) * 50, kiln.tensor(3))


def test_factorizations(tmp_path):
    """By what does not depend on the signs of bases."""

    class Factors(torch.nn.Module):
        def forward(self, x):
            values, basis = torch.linalg.eigh(x)
            u, s, vh = torch.linalg.svd(x)
            found, vectors = torch.linalg.eig(x)
            return (
                basis @ torch.diag(values.exp()) @ basis.mT,
                u @ torch.diag(s.sqrt()) @ vh,
                (vectors @ torch.diag(found * found) @ torch.linalg.inv(vectors)).real,
                torch.linalg.eigvalsh(x),
                torch.linalg.svdvals(x),
            )

    a = torch.randn(4, 4, generator=torch.Generator().manual_seed(2))
    x = (a @ a.T + torch.eye(4),)
    mine = kiln.export.load(saved(export(Factors(), x), tmp_path / "m.pt2"))
    same(mine(*given(x)), Factors()(*x), 1e-3, 1e-3)


def test_arithmetic_of_sizes(tmp_path):
    class Numbers(torch.nn.Module):
        def forward(self, x):
            n = x.shape[0]
            big = torch.sym_max(n, 7)
            whole = [n + 3, n - 9, n * n, n // 3, n % 3, -n, n**2, big, torch.sym_min(n, 7), 2 * n - n // 2]
            return [*whole, n / 4, torch.sym_float(n) * 0.5, torch.sym_sqrt(n)]

    class Compared(torch.nn.Module):
        def forward(self, x):
            n = x.nonzero().shape[0]
            return x * torch.sym_ite(n > 2, 3, 5), x + torch.sym_ite(torch.sym_not(n > 1), 3, 5)

    n = Dim("n", min=3, max=60)
    path = saved(export(Numbers(), (torch.ones(8),), dynamic_shapes=({0: n},)), tmp_path / "m.pt2")
    mine = kiln.export.load(path)
    for size in (3, 10, 59):
        found, expected = mine(kiln.ones(size)), Numbers()(torch.ones(size))
        assert found == pytest.approx(expected) and [*map(type, found)] == [*map(type, expected)]
    path = saved(export(Compared(), (torch.ones(8),)), tmp_path / "c.pt2")
    mine = kiln.export.load(path)
    for count in (1, 2, 6):
        x = (torch.arange(8) < count).float()
        found, expected = mine(given(x)), Compared()(x)
        same(found, expected)


def test_random_numbers(tmp_path):
    class Draws(torch.nn.Module):
        def forward(self, x, p):
            a = torch.ops.aten
            return [
                torch.rand(2000), torch.randn(2000), torch.randint(3, 9, (2000,)), torch.randint(5, (2000,)),
                torch.randperm(9), torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 5),
                torch.randint_like(x, 2, 5), torch.bernoulli(p), a.bernoulli.p(x, 0.3), a.bernoulli.Tensor(x, p),
                torch.normal(x, 2.0), torch.normal(0.0, p), torch.normal(x, p), torch.normal(1.0, 2.0, (2000,)),
                torch.multinomial(p, 500, replacement=True), torch.poisson(p), torch.binomial(p.round() * 5, p),
                a.uniform(x, 2.0, 3.0), a.normal_functional(x, 1.0, 2.0), a.exponential(x, 2.0), a.geometric(x, 0.5),
                a.cauchy(x), a.log_normal(x, 0.0, 0.2), x.clone().uniform_(2, 3), x.clone().normal_(1, 2),
                x.clone().bernoulli_(0.3), x.clone().bernoulli_(p), x.clone().exponential_(2), x.clone().geometric_(0.5),
                x.clone().cauchy_(), x.clone().log_normal_(0, 0.2), torch.nn.functional.dropout(p + 1, 0.25),
                torch.binomial(torch.full_like(p, 5.0), p), a.empty_like(x), a.empty.memory_format([2, 3]),
                a.new_empty(x, [4]), a.empty_strided([2, 3], [3, 1]), a.new_empty_strided(x, [2, 3], [3, 1]),
                a.empty_permuted([2, 3], [1, 0]),
            ]  # fmt: skip

    torch.manual_seed(0)
    args = torch.zeros(2000), torch.rand(2000)
    mine = kiln.export.load(saved(export(Draws(), args), tmp_path / "m.pt2"))
    first, second, expected = mine(*given(args)), mine(*given(args)), Draws()(*args)
    for i, (a, b, c) in enumerate(zip(first, second, expected)):
        assert tuple(a.shape) == tuple(c.shape) and str(a.dtype) == str(c.dtype).replace("torch", "kiln"), i
        if a.numel() >= 500 and i < 35:
            assert not kiln.equal(a, b), i  # drawn anew
            ours, theirs = (x.numpy().astype(float).clip(-5, 9) for x in (a, c))
            assert abs(ours.mean() - theirs.mean()) < 0.15 + 0.03 * abs(theirs.mean()), i
            assert abs(ours.std() - theirs.std()) < 0.15 + 0.05 * theirs.std(), i
    assert sorted(first[4].tolist()) == list(range(9))


def test_distinct_values(tmp_path):
    class Distinct(torch.nn.Module):
        def forward(self, x):
            values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
            runs = torch.unique_consecutive(x, return_counts=True)
            rows = torch.unique(x.view(3, 2), dim=0)
            masked = torch.masked_select(x, x > 1)
            places = torch.nonzero(x, as_tuple=True)
            return *places, values, inverse, counts, *runs, rows, masked, torch.argwhere(x), torch.bincount(x)

    x = (torch.tensor([3, 1, 1, 2, 3, 1]),)
    mine = kiln.export.load(saved(export(Distinct(), x), tmp_path / "m.pt2"))
    same(mine(*given(x)), Distinct()(*x))


def test_weights_that_share(tmp_path):
    class Shares(torch.nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.arange(12.0).reshape(3, 4)
            self.register_buffer("whole", whole)
            self.register_buffer("column", whole.t()[1])
            self.register_buffer("wide", torch.ones(1).expand(5))
            self.a = torch.nn.Linear(4, 4)
            self.b = torch.nn.Linear(4, 4)
            self.b.weight = self.a.weight
            self.narrow = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
            self.fixed = torch.nn.Parameter(torch.ones(4), requires_grad=False)

        def forward(self, x):
            return self.b(self.a(x)) * self.fixed, self.column + self.whole[:, 0], self.wide + 1, self.narrow * 2

    module, x = Shares(), (torch.randn(2, 4),)
    mine = kiln.export.load(saved(export(module, x), tmp_path / "m.pt2"))
    same(mine(*given(x)), module(*x))
    assert mine.a.weight is mine.b.weight and len(list(mine.parameters())) == len(list(module.parameters()))
    assert not mine.fixed.requires_grad and mine.narrow.dtype == kiln.bfloat16
    mine.whole.fill_(7)
    assert mine.column.tolist() == [7, 7, 7]  # as in PyTorch: one storage


def test_dtypes(tmp_path):
    class Dtypes(torch.nn.Module):
        def forward(self, *xs):
            return [x + x.to(torch.float32).to(x.dtype) for x in xs]

    names = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
    args = tuple(torch.ones(3, dtype=getattr(torch, n)) for n in names)
    mine = kiln.export.load(saved(export(Dtypes(), args), tmp_path / "m.pt2"))
    same(mine(*given(args)), Dtypes()(*args))


def test_several_programs(tmp_path):
    from torch.export.pt2_archive._package import package_pt2

    one = export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    two = export(torch.nn.ReLU(), (torch.ones(3),))
    path = tmp_path / "two.pt2"
    with path.open("wb") as file:
        package_pt2(file, exported_programs={"linear": one, "relu": two})
    assert kiln.export.load(path, "relu")(kiln.tensor([-1.0, 2, 3])).tolist() == [0, 2, 3]
    assert kiln.export.load(path, program="linear").weight.shape == (2, 2)
    with pytest.raises(kiln.errors.IoError, match="no program 'model'; it has 'linear', 'relu'"):
        kiln.export.load(path)


def test_operators_are_listed():
    found = kiln.export.operators()
    assert len(found) > 900 and found == sorted(found)
    assert {"aten.add.Tensor", "higher_order.cond", "_operator.floordiv"} <= set(found)


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (pathlib.Path(__file__).parents[2] / "docs" / "pt2.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.S | re.M)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "pt2.md", "exec"), {})
