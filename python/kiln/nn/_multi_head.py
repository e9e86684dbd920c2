"""What MultiheadAttention computes behind its projections, and the function of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _C
from .._C._functional import dropout, linear, scaled_dot_product_attention

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


def additive(mask, like):
    """Numbers to add to the scores: -inf where a bool mask holds."""
    if mask is None:
        return None
    if mask.dtype == _C.bool_:
        return _C.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(
            mask, -math.inf
        )
    if not mask.is_floating_point():
        raise RuntimeError("MultiheadAttention: masks must be bool or floating point")
    return mask.to(like.dtype)


def attend(q, k, v, num_heads, extra, padding, attn_mask, p, need_weights, causal):
    """The heads' results side by side [N, L, E], and the weights [N, heads, L, S] or None.

    q [N, L, E], k and v [N, S, E]: after the projections; k and v may be [N, heads, S, d]. extra:
    (bias_k, bias_v, add_zero_attn). p: of the dropout.
    """
    batch, queries, features = q.shape
    head_dim = features // num_heads
    bias_k, bias_v, add_zero_attn = extra
    keys = k.shape[-2]
    if bias_k is not None:
        k = _C.cat([k, bias_k.expand(batch, 1, -1)], 1)
        v = _C.cat([v, bias_v.expand(batch, 1, -1)], 1)
    q, k, v = (
        x if x.dim() == 4 else x.reshape(batch, -1, num_heads, head_dim).transpose(1, 2)
        for x in (q, k, v)
    )
    if add_zero_attn:
        none = _C.zeros(batch, num_heads, 1, head_dim, dtype=q.dtype, device=q.device)
        k, v = _C.cat([k, none], 2), _C.cat([v, none], 2)
    mask = additive(attn_mask, q)
    causal = causal and padding is None and not need_weights and k.shape[2] == keys
    if mask is not None and mask.dim() == 3:
        mask = mask.reshape(batch, -1, queries, mask.shape[-1])
    if padding is not None:
        hidden = additive(padding, q).reshape(batch, 1, 1, padding.shape[-1])
        mask = hidden if mask is None else mask + hidden
    if mask is not None and k.shape[2] != mask.shape[-1]:  # the keys that were added
        more = _C.zeros(
            *mask.shape[:-1], k.shape[2] - mask.shape[-1], dtype=q.dtype, device=q.device
        )
        mask = _C.cat([mask, more], -1)
    weights = None
    if need_weights:
        scores = (q * (1 / math.sqrt(head_dim))).matmul(k.transpose(-2, -1))
        weights = dropout(_C.softmax(scores if mask is None else scores + mask, -1), p)
        heads = weights.matmul(v)
    else:
        heads = scaled_dot_product_attention(q, k, v, None if causal else mask, p, causal)
    return heads.transpose(1, 2).reshape(batch, queries, -1), weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """softmax(q k^T / sqrt(d)) v in num_heads subspaces, with the weights of the projections: what
    nn.MultiheadAttention computes from its own. query [L, N, E], key [S, N, E], value [S, N, E] (N may
    be left out) -> the output in query's shape, and the weights [N, L, S] or None.

    embed_dim_to_check: E. in_proj_weight: [3 E, E], the three one below another; with
    use_separate_proj_weight: q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim].
    in_proj_bias [3 E], out_proj_weight [E, E], out_proj_bias [E]. bias_k, bias_v: [1, 1, E], a key and
    a value that stand behind the others; add_zero_attn: ones of zeros. dropout_p: of the weights, in
    training. static_k, static_v: [N num_heads, S, E / num_heads], in the place of the projected ones.
    key_padding_mask [N, S] and attn_mask [L, S] or [N num_heads, L, S]: bool ones hold where attention
    is not allowed, others are added to the scores. need_weights: else None.
    average_attn_weights: over the heads, else [N, num_heads, L, S]. is_causal: attn_mask is causal.

    >>> x, one = kiln.ones(2, 1, 2), kiln.eye(2)
    >>> output, weights = F.multi_head_attention_forward(
    ...     x, x, x, 2, 1, kiln.cat([one, one, one]), None, None, None, False, 0., one, None)
    >>> output.flatten(), weights.flatten()
    (tensor([1., 1., 1., 1.]), tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    batched = query.dim() == 3
    if query.dim() not in (2, 3) or key.dim() != query.dim() or value.dim() != query.dim():
        raise RuntimeError(
            "multi_head_attention_forward: query, key and value must all have 3 dims, or 2 without a "
            f"batch; got {query.dim()}, {key.dim()} and {value.dim()}"
        )
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads != 0:
        raise RuntimeError(
            f"multi_head_attention_forward: expected queries of {embed_dim_to_check} features, a "
            f"multiple of {num_heads} heads; got {query.shape[-1]}"
        )
    inputs = [x.transpose(0, 1) if batched else x.unsqueeze(0) for x in (query, key, value)]
    if not batched and key_padding_mask is not None:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    else:
        weights = [None] * 3 if in_proj_weight is None else list(in_proj_weight.chunk(3))
    if any(w is None for w in weights):
        raise RuntimeError(
            "multi_head_attention_forward: expected in_proj_weight, or with use_separate_proj_weight "
            "q_proj_weight, k_proj_weight and v_proj_weight"
        )
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    given: Any = zip(inputs, weights, biases)
    q, k, v = (linear(x, w, b) for x, w, b in given)
    fixed = [
        None if x is None else x.reshape(q.shape[0], num_heads, *x.shape[1:])
        for x in (static_k, static_v)
    ]
    k, v = (x if other is None else other for x, other in zip((k, v), fixed))
    if bias_k is not None and k.dim() == 4:
        raise RuntimeError("multi_head_attention_forward: bias_k cannot stand behind static_k")
    output, found = attend(
        q, k, v, num_heads, (bias_k, bias_v, add_zero_attn), key_padding_mask, attn_mask,
        dropout_p if training else 0.0, need_weights, is_causal,
    )  # fmt: skip
    output = linear(output, out_proj_weight, out_proj_bias)
    if found is not None and average_attn_weights:
        found = found.mean(1)
    if not batched:
        return output.squeeze(0), None if found is None else found.squeeze(0)
    return output.transpose(0, 1).contiguous(), found
