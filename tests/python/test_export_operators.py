"""Every operator that kiln.export reads: exported from PyTorch, and compared in values and gradients."""

import pytest

torch = pytest.importorskip("torch")

import torch.utils._pytree as pytree  # noqa: E402
from pt2_cases import FAMILIES, by_hand  # noqa: E402
from pt2_files import Name, export, given, model_json, operators_of, same, saved, with_nodes  # noqa: E402

import kiln  # noqa: E402
import kiln.export  # noqa: E402


class Calls(torch.nn.Module):
    """The calls of a family, one after another; their tensors are its inputs."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def forward(self, tensors):
        rest = iter(tensors)
        out = []
        for name, args, kwargs in self.cases:
            args, kwargs = pytree.tree_map(lambda x: next(rest) if isinstance(x, torch.Tensor) else x, (args, kwargs))
            if name.partition(".")[0].endswith("_") and not name.startswith("__"):
                args = (args[0].clone(), *args[1:])
            packet, _, overload = name.partition(".")
            result = getattr(getattr(torch.ops.aten, packet), overload)(*args, **kwargs)
            if "embedding_bag" in name:  # what follows is for PyTorch's own backward pass
                result = result[0]
            out.append([x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)])
        return out


def tensors_of(cases):
    return [x for _, args, kwargs in cases for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_operators(family, tmp_path):
    cases = list(family())
    tensors = tensors_of(cases)
    module = Calls(cases)
    path = saved(export(module, (tensors,)), tmp_path / "calls.pt2")
    assert {f"aten.{name}" for name, _, _ in cases} <= operators_of(path)
    compare(cases, module(tensors), tensors, kiln.export.load(path))


def compare(cases, expected, tensors, run):
    mine = given(tensors, grad=True)
    found = run(mine)
    failed = []

    def check(name, a, b, tolerance):
        try:
            same(a, b, tolerance, tolerance, name)
        except AssertionError as error:
            failed.append(f"{name}: {error}")

    losses = []
    for (name, _, _), a, b in zip(cases, found, expected):
        check(name, a, b, 1e-9 if all(y.dtype in (torch.float64, torch.complex128) for y in b) else 1e-6)
        losses.append([sum(map(loss_of, x)) for x in (a, b)])
    ours, theirs = (sum(x) for x in zip(*losses))
    wanted = [x for x in tensors if x.requires_grad]
    if isinstance(theirs, torch.Tensor):
        gradients = torch.autograd.grad(theirs, wanted, allow_unused=True)
        ours.backward()
        names = [name for name, args, kwargs in cases for x in tensors_of([(name, args, kwargs)])]
        expected = iter(gradients)
        for name, x, y in zip(names, tensors, mine):
            if x.requires_grad:
                gradient = next(expected)
                gradient = torch.zeros_like(x) if gradient is None else gradient
                check(f"gradient of {name}", kiln.zeros_like(y) if y.grad is None else y.grad, gradient, 1e-6)
    assert not failed, "\n".join(failed)


def loss_of(y):
    """A number that depends on all elements of a result, where it has a gradient."""
    if not y.requires_grad:
        return 0
    lib = torch if isinstance(y, torch.Tensor) else kiln
    if y.is_complex():
        y = lib.view_as_real(y.resolve_conj() if lib is torch else y)
    return (y.square().sum() + y.sum() * 0.3).to(lib.float64)


def test_operators_by_hand(tmp_path):
    """What torch.export of this version does not write: nodes as it writes others."""

    class Same(torch.nn.Module):
        def forward(self, tensors):
            return [x + 0 for x in tensors]

    cases = list(by_hand())
    tensors = tensors_of(cases)
    template = saved(export(Same(), (tensors,)), tmp_path / "template.pt2")
    specs = model_json(template)["graph_module"]["signature"]["input_specs"]
    names = iter(spec["user_input"]["arg"]["as_tensor"]["name"] for spec in specs)
    nodes, outputs, counts = [], [], []
    expected = Calls(cases)(tensors)
    for (name, args, kwargs), results in zip(cases, expected):
        packet, _, overload = name.partition(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
        named = {a.name: value for a, value in zip(schema.arguments, args)} | kwargs
        named = pytree.tree_map(lambda x: Name(next(names)) if isinstance(x, torch.Tensor) else x, named)
        made = [f"y{len(nodes)}_{i}" for i in range(len(results))]
        nodes.append((f"aten.{name}", named, made))
        outputs += made
        counts.append(len(made))
    path = with_nodes(template, nodes, outputs, tmp_path / "calls.pt2")
    program = kiln.export.load(path)

    def run(tensors):
        flat = iter(program(tensors))
        return [[next(flat) for _ in range(count)] for count in counts]

    compare(cases, expected, tensors, run)


# Operators whose results are random numbers or no tensors: test_export.py has them.
ELSEWHERE = """rand randn randint randperm rand_like randn_like randint_like bernoulli bernoulli_ normal multinomial
    poisson binomial uniform uniform_ normal_functional normal_ exponential exponential_ geometric geometric_ cauchy
    cauchy_ log_normal log_normal_ empty empty_like new_empty empty_strided new_empty_strided empty_permuted
    _unique2 unique_dim unique_consecutive masked_select argwhere nonzero bincount sym_size sym_constrain_range
    sym_constrain_range_for_size item _local_scalar_dense _assert_scalar _assert_async nonzero_numpy sym_numel
    linalg_eig linalg_eigh linalg_svd _assert_tensor_metadata detach_""".split()


def test_every_operator_has_a_case():
    tested = {f"aten.{name}" for family in (*FAMILIES, by_hand) for name, _, _ in family()}
    left = [n for n in kiln.export.operators() if n.startswith("aten.") and n not in tested]
    assert [n for n in left if n.split(".")[1] not in ELSEWHERE] == []
