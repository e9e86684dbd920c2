"""Every operator that kiln.export reads: exported from PyTorch, and compared in values and gradients."""

import pytest

torch = pytest.importorskip("torch")

import torch.utils._pytree as pytree  # noqa: E402
from pt2_cases import FAMILIES  # noqa: E402
from pt2_files import export, given, operators_of, same, saved  # noqa: E402

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


SEEN = set()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_operators(family, tmp_path):
    cases = list(family())
    tensors = tensors_of(cases)
    module = Calls(cases)
    path = saved(export(module, (tensors,)), tmp_path / "calls.pt2")
    SEEN.update(operators_of(path))
    expected = module(tensors)
    mine = given(tensors, grad=True)
    found = kiln.export.load(path)(mine)
    failed = []
    for (name, _, _), a, b in zip(cases, found, expected):
        try:
            same(a, b, 1e-9, 1e-9, name)
        except AssertionError as error:
            failed.append(f"{name}: {error}")
    assert not failed, "\n".join(failed)
