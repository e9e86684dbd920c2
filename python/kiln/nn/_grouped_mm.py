"""Products of several matrices whose sizes differ, as torch.nn.functional.grouped_mm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from .._C import Tensor, dtype


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """The product of each group of mat_a with that of mat_b. Of three dims, a group is mat[g]; of two,
    it is what lies between offs[g - 1] and offs[g]:

    [N, K] with [G, K, M]: of rows -> [N, M]. [G, N, K] with [K, M]: of columns -> [N, M].
    [N, K] with [K, M]: of K -> [G, N, M]. [G, N, K] with [G, K, M] -> [G, N, M], without offs.

    offs: where the groups end, int32. bias: must be None, as in PyTorch. out_dtype: of the result.

    >>> a, b = kiln.ones(3, 2), kiln.tensor([1., 2.]).reshape(2, 1, 1).expand(2, 2, 1)
    >>> F.grouped_mm(a, b, offs=kiln.tensor([1, 3])).flatten()
    tensor([2., 4., 4.])
    """
    flat = [x.dim() == 2 for x in (mat_a, mat_b)]
    if any(x.dim() not in (2, 3) for x in (mat_a, mat_b)) or bias is not None:
        raise errors.ValueError("grouped_mm: expected matrices of 2 or 3 dims, and no bias")
    if any(flat) != (offs is not None):
        raise errors.ValueError(
            "grouped_mm: expected offs where a matrix has 2 dims, and only there; got "
            f"{list(mat_a.shape)} and {list(mat_b.shape)}"
        )
    if offs is None:
        product = mat_a.bmm(mat_b)
        return product if out_dtype is None else product.to(out_dtype)
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends))
    if flat == [True, False]:
        parts = [mat_a[i:j].mm(mat_b[g]) for g, (i, j) in enumerate(groups)]
        rest = mat_a.shape[0] - (ends[-1] if ends else 0)
        if rest > 0:  # rows of no group
            parts.append(mat_a.new_zeros(rest, mat_b.shape[-1]))
        product = _C.cat(parts)
    elif flat == [False, True]:
        parts = [mat_a[g].mm(mat_b[:, i:j]) for g, (i, j) in enumerate(groups)]
        rest = mat_b.shape[1] - (ends[-1] if ends else 0)
        if rest > 0:
            parts.append(mat_a.new_zeros(mat_a.shape[1], rest))
        product = _C.cat(parts, 1)
    else:
        product = _C.stack([mat_a[:, i:j].mm(mat_b[i:j]) for i, j in groups])
    return product if out_dtype is None else product.to(out_dtype)
