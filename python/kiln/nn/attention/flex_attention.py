"""Attention whose scores a function changes, by torch.nn.attention.flex_attention's names.

The functions are called once, with tensors of indices that broadcast against each other: what they
compute of single indices holds for all. Scores are computed in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C, errors

if TYPE_CHECKING:
    from ..._C import Tensor
    from ..._typing import DeviceLike

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
ScoreMod = Callable[..., Any]
MaskMod = Callable[..., Any]


class AuxRequest(NamedTuple):
    """What flex_attention gives beside the output. lse: the logarithm of the sum of exp(scores) of
    each query. max_scores: its largest score.

    >>> kiln.nn.attention.flex_attention.AuxRequest(lse=True).max_scores
    False
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What flex_attention gives beside the output; None for what was not asked for. lse, max_scores:
    as in AuxRequest.

    >>> kiln.nn.attention.flex_attention.AuxOutput().lse
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _indices(sizes: Any, device: Any) -> list[Any]:
    """The indices of batches, heads, queries and keys, each in its dim of four."""
    found = []
    for dim, n in enumerate(sizes):
        shape = [1] * 4
        shape[dim] = n
        found.append(_C.arange(n, dtype=_C.int32, device=device).reshape(shape))
    return found


def create_mask(
    mod_fn: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
) -> Tensor:
    """The mask [B, H, Q_LEN, KV_LEN] of a function of indices: bool, True where attention is allowed.

    mod_fn: mask(batch, head, query, key) -> bool. A function of a score and these four gives what it
    makes of scores of 0. B, H: None for 1. device: of the mask.

    >>> from kiln.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, query, key: query >= key, None, None, 2, 2)[0, 0].tolist()
    [[True, False], [True, True]]
    """
    import inspect

    shape = [1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN]
    indices = _indices(shape, device)
    parameters = inspect.signature(mod_fn).parameters.values()
    if sum(p.kind == p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters) == 5:
        found = mod_fn(_C.zeros(shape, device=device), *indices)
    else:
        found = mod_fn(*indices)
    return found.expand(shape).contiguous()


class BlockMask:
    """What create_block_mask() gives. mask: bool [B, H, Q_LEN, KV_LEN]. mask_mod: the function. seq_lengths: queries and keys.
    BLOCK_SIZE: of the blocks that PyTorch skips.

    >>> from kiln.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, query, key: query >= key, None, None, 4, 4).sparsity()
    37.5
    """

    def __init__(
        self, mask: Tensor, mask_mod: MaskMod, BLOCK_SIZE: int | tuple[int, int] = 128
    ) -> None:
        self._mask = mask
        self.mask_mod = mask_mod
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        self.seq_lengths = (mask.shape[2], mask.shape[3])

    @property
    def shape(self) -> tuple[int, ...]:
        """[B, H, Q_LEN, KV_LEN]."""
        return tuple(self._mask.shape)

    def numel(self) -> int:
        """How many pairs there are."""
        return self._mask.numel()

    def sparsity(self) -> float:
        """How many of 100 pairs are masked."""
        return 100 * (1 - self._mask.float().mean().item())

    def to(self, device: DeviceLike) -> BlockMask:
        """The mask on a device."""
        return BlockMask(self._mask.to(device), self.mask_mod, self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
) -> BlockMask:
    """create_mask() for flex_attention().

    mask_mod: mask(batch, head, query, key) -> bool, True where attention is allowed. B, H: None for
    all. Q_LEN, KV_LEN: how many queries and keys. device: of the mask. BLOCK_SIZE, _compile: of
    PyTorch's blocks, kept without effect.

    >>> from kiln.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, query, key: query >= key, None, None, 4, 4)
    BlockMask(shape=(1, 1, 4, 4), sparsity=37.50%)
    """
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), mask_mod, BLOCK_SIZE)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The function that is true where all mask_mods are.

    >>> from kiln.nn.attention.flex_attention import and_masks, create_mask
    >>> both = and_masks(lambda b, h, query, key: query >= key, lambda b, h, query, key: key > 0)
    >>> create_mask(both, None, None, 2, 2)[0, 0].tolist()
    [[False, False], [False, True]]
    """

    def all_of(*indices: Any) -> Any:
        found = indices[0].new_ones((), dtype=_C.bool_)
        for mask in mask_mods:
            found = found & mask(*indices)
        return found

    return all_of


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The function that is true where one of mask_mods is.

    >>> from kiln.nn.attention.flex_attention import create_mask, or_masks
    >>> either = or_masks(lambda b, h, query, key: query > key, lambda b, h, query, key: key > 0)
    >>> create_mask(either, None, None, 2, 2)[0, 0].tolist()
    [[False, True], [True, True]]
    """

    def one_of(*indices: Any) -> Any:
        found = indices[0].new_zeros((), dtype=_C.bool_)
        for mask in mask_mods:
            found = found | mask(*indices)
        return found

    return one_of


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True, whatever the indices batch, head, token_q and token_kv are.

    >>> from kiln.nn.attention.flex_attention import create_mask, noop_mask
    >>> create_mask(noop_mask, None, None, 1, 2).tolist()
    [[[[True, True]]]]
    """
    return batch.new_ones((), dtype=_C.bool_)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(q k^T scale)) v over the keys that block_mask allows: query [B, H, L, E], key
    [B, H, S, E], value [B, H, S, F] -> [B, H, L, F]. A query without a key gives zeros.

    score_mod: f(score, batch, head, query, key) -> score. scale: 1 / sqrt(E) without it. enable_gqa:
    key and value have fewer heads, each for several of the query's. return_lse: gives (output, lse)
    of return_aux's lse. return_aux: gives (output, AuxOutput). kernel_options: of PyTorch's kernels,
    without effect.

    >>> from kiln.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> causal = create_block_mask(lambda b, h, query, key: query >= key, None, None, 2, 2)
    >>> x = kiln.zeros(1, 1, 2, 1)
    >>> flex_attention(x, x, kiln.tensor([[[[1.], [3.]]]]), block_mask=causal).flatten()
    tensor([1., 2.])
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise errors.ShapeError(
            "flex_attention: expected query, key and value of 4 dims; got "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    heads = query.shape[1]
    if key.shape[1] != heads:
        if not enable_gqa or heads % key.shape[1] != 0:
            raise errors.ShapeError(
                f"flex_attention: {heads} heads of queries and {key.shape[1]} of keys; expected as "
                "many, or a multiple and enable_gqa=True"
            )
        key, value = (x.repeat_interleave(heads // key.shape[1], 1) for x in (key, value))
    dtype = query.dtype
    exact = dtype if dtype == _C.float64 else _C.float32
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(exact).matmul(key.to(exact).mT) * factor
    if score_mod is not None:
        shape = scores.shape
        changed = score_mod(scores, *_indices(shape, query.device))
        scores = changed.to(exact).expand(shape)
    if block_mask is not None:
        mask = block_mask._mask
        if mask.shape[2] < scores.shape[2] or mask.shape[3] < scores.shape[3]:
            raise errors.ShapeError(
                f"flex_attention: block_mask is for {mask.shape[2]} queries and {mask.shape[3]} keys; "
                f"got {scores.shape[2]} and {scores.shape[3]}"
            )
        mask = mask[:, :, : scores.shape[2], : scores.shape[3]]
        scores = scores.masked_fill(~mask.to(scores.device), -math.inf)
    none = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)
    output = weights.matmul(value.to(exact)).to(dtype)
    if return_aux is None and not return_lse:
        return output
    if return_aux is None:
        return output, scores.logsumexp(-1)
    return output, AuxOutput(
        scores.logsumexp(-1) if return_aux.lse else None,
        scores.amax(-1) if return_aux.max_scores else None,
    )
