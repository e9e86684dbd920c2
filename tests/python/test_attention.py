"""MultiheadAttention and TransformerEncoderLayer."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import nn

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")


def pair(name, *args, **options):
    """Kiln's module and PyTorch's with the same parameters."""
    import torch

    theirs = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options)
    state = {k: kiln.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    return ours, theirs


def both(shape):
    import torch

    x = torch.randn(*shape)
    return kiln.tensor(x.numpy()), x


def close(ours, theirs):
    if theirs is None:
        assert ours is None
        return
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5
    )


@needs_torch
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True, "bias": False},
        {"kdim": 5, "vdim": 7},
        {"add_bias_kv": True, "add_zero_attn": True},
    ],
)
def test_multihead_attention_is_pytorchs(options, need_weights):
    import torch

    ours, theirs = pair("MultiheadAttention", 8, 2, **options)
    first = options.get("batch_first", False)
    q, tq = both((3, 4, 8) if first else (4, 3, 8))
    k, tk = both((3, 6, 8) if first else (6, 3, options.get("kdim", 8)))
    v, tv = both((3, 6, 8) if first else (6, 3, options.get("vdim", 8)))
    padding = np.zeros((3, 6), dtype=bool)
    padding[1, 4:] = True
    mask = np.triu(np.ones((4, 6), dtype=bool), 3)
    for masks in (
        {},
        {"attn_mask": mask},
        {"key_padding_mask": padding},
        {"attn_mask": mask, "key_padding_mask": padding},
    ):
        mine = {name: kiln.tensor(x) for name, x in masks.items()}
        yours = {name: torch.tensor(x) for name, x in masks.items()}
        for average in (True, False):
            more = {"need_weights": need_weights, "average_attn_weights": average}
            got = ours(q, k, v, **mine, **more)
            expected = theirs(tq, tk, tv, **yours, **more)
            close(got[0], expected[0])
            close(got[1], expected[1])


@needs_torch
def test_multihead_attention_without_a_batch_and_causal():
    import torch

    ours, theirs = pair("MultiheadAttention", 8, 2)
    x, tx = both((4, 8))
    close(ours(x, x, x)[0], theirs(tx, tx, tx)[0])
    mask = np.triu(np.ones((4, 4), dtype=bool), 1)
    more = {"is_causal": True, "need_weights": False}
    close(
        ours(x, x, x, attn_mask=kiln.tensor(mask), **more)[0],
        theirs(tx, tx, tx, attn_mask=torch.tensor(mask), **more)[0],
    )
    with pytest.raises(RuntimeError, match="attn_mask"):
        ours(x, x, x, is_causal=True)


@needs_torch
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_encoder_layer_is_pytorchs(norm_first, activation):
    options = {"dim_feedforward": 16, "activation": activation, "norm_first": norm_first}
    ours, theirs = pair("TransformerEncoderLayer", 8, 2, dropout=0.0, **options)
    x, tx = both((5, 3, 8))
    x.requires_grad_()
    tx.requires_grad_()
    y, ty = ours(x), theirs(tx)
    close(y, ty)
    y.square().sum().backward()
    ty.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), tx.grad.numpy(), rtol=1e-3, atol=1e-4)
    for p, q in zip(ours.parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="divisible"):
        nn.MultiheadAttention(7, 2)
    with pytest.raises(RuntimeError, match="dims"):
        nn.MultiheadAttention(8, 2)(kiln.zeros(8), kiln.zeros(8), kiln.zeros(8))


def layers_with_other_blocks(lib):
    """The names of the blocks in the order of their calls, and the results of layers without dropout."""
    called = []

    def scaled(base, names):
        def method(name):
            def block(self, *args, **kwargs):
                called.append(name)
                return 2 * getattr(base, name)(self, *args, **kwargs)

            return block

        return type("Scaled", (base,), {name: method(name) for name in names})

    encoder = scaled(lib.nn.TransformerEncoderLayer, ("_sa_block", "_ff_block"))
    decoder = scaled(lib.nn.TransformerDecoderLayer, ("_sa_block", "_mha_block", "_ff_block"))
    results = []
    rng = np.random.default_rng(3)
    mask = lib.triu(lib.ones(3, 3), 1).to(lib.bool)
    padding = lib.tensor([[False, False, True], [False, False, False]])
    for norm_first in (False, True):
        for kind in (encoder, decoder):
            layer = kind(4, 2, 8, norm_first=norm_first, batch_first=True).double().eval()
            with lib.no_grad():
                for p in layer.parameters():
                    p.copy_(lib.from_numpy(rng.normal(size=tuple(p.shape))))
            x = lib.from_numpy(rng.normal(size=(2, 3, 4)))
            if kind is encoder:
                # PyTorch has a faster path where no gradient is needed, which calls no blocks.
                y = layer(x.requires_grad_(), mask, padding)
                direct = layer._sa_block(x, mask, padding)
            else:
                y = layer(x, x * 2, mask, None, padding, None)
                direct = layer._mha_block(x, x, None, padding)
            results += [y.detach().numpy(), direct.detach().numpy()]
    return called, results


@needs_torch
def test_blocks_of_transformer_layers_may_be_overridden():
    import torch

    (called, results), (their_calls, theirs) = map(layers_with_other_blocks, (kiln, torch))
    assert called == their_calls and len(called) == 14
    for a, b in zip(results, theirs):
        np.testing.assert_allclose(a, b, atol=1e-12)


@needs_torch
@pytest.mark.parametrize("options", [
    {},
    {"need_weights": False},
    {"separate": True, "average_attn_weights": False},
    {"extra": True},
    {"static": True},
    {"batched": False, "attn_mask": True},
    {"attn_mask": True, "padding": True},
])  # fmt: skip
def test_multi_head_attention_forward_is_pytorchs(options):
    import torch

    options = dict(options)
    rng = np.random.default_rng(3)
    batched, separate = options.pop("batched", True), options.pop("separate", False)
    extra, static = options.pop("extra", False), options.pop("static", False)
    shape = (lambda n: (n, 3, 8)) if batched else (lambda n: (n, 8))
    arrays = {
        "query": shape(4), "key": (*shape(6)[:-1], 5) if separate else shape(6), "value": shape(6),
        "in_proj_bias": (24,), "out_proj_weight": (8, 8), "out_proj_bias": (8,),
    }  # fmt: skip
    if separate:
        arrays |= {"q_proj_weight": (8, 8), "k_proj_weight": (8, 5), "v_proj_weight": (8, 8)}
    else:
        arrays["in_proj_weight"] = (24, 8)
    if extra:
        arrays |= {"bias_k": (1, 1, 8), "bias_v": (1, 1, 8)}
    if static:
        arrays |= {"static_k": (6, 6, 4), "static_v": (6, 6, 4)}
    if options.pop("attn_mask", False):
        arrays["attn_mask"] = (4, 6)
    values = {name: rng.normal(size=size, scale=0.5).astype("float32") for name, size in arrays.items()}
    if options.pop("padding", False):
        values["key_padding_mask"] = np.arange(18).reshape(3, 6) % 5 == 1
    results = []
    for library in (kiln, torch):
        given = {"in_proj_weight": None, "bias_k": None, "bias_v": None}
        given |= {name: library.from_numpy(value.copy()) for name, value in values.items()}
        given["query"].requires_grad_()
        output, weights = library.nn.functional.multi_head_attention_forward(
            embed_dim_to_check=8, num_heads=2, add_zero_attn=extra, dropout_p=0.5, training=False,
            use_separate_proj_weight=separate, **given, **options,
        )  # fmt: skip
        output.sin().sum().backward()
        results.append((output, weights, given["query"].grad))
    for ours, theirs in zip(*results):
        close(ours, theirs)


def test_multi_head_attention_forward_refuses():
    x, w = kiln.ones(2, 1, 4), kiln.ones(12, 4)

    def call(**options):
        given = dict(
            query=x, key=x, value=x, embed_dim_to_check=4, num_heads=2, in_proj_weight=w,
            in_proj_bias=None, bias_k=None, bias_v=None, add_zero_attn=False, dropout_p=0.0,
            out_proj_weight=w[:4], out_proj_bias=None,
        )  # fmt: skip
        return kiln.nn.functional.multi_head_attention_forward(**given | options)

    for match, options in (
        ("queries of 6 features", {"embed_dim_to_check": 6}),
        ("multiple of 3 heads", {"num_heads": 3}),
        ("in_proj_weight", {"in_proj_weight": None}),
        ("attn_mask", {"is_causal": True}),
        ("3 dims", {"query": x[0, 0]}),
    ):
        with pytest.raises(RuntimeError, match=match):
            call(**options)


# ---- flex_attention


def flex(library):
    import importlib

    return importlib.import_module(f"{library.__name__}.nn.attention.flex_attention")


MODS = {
    "none": (None, None),
    "causal": (None, lambda b, h, q, k: q >= k),
    "bias": (lambda s, b, h, q, k: s + 0.1 * (q - k), None),
    "alibi": (lambda s, b, h, q, k: s - (h + 1) * 0.25 * (q - k), lambda b, h, q, k: q >= k),
    "batch": (lambda s, b, h, q, k: s * (b + 1), lambda b, h, q, k: (k != 2) | (b == 0)),
    "some without a key": (None, lambda b, h, q, k: q + k > 3),
}


@needs_torch
@pytest.mark.parametrize("name", MODS)
def test_flex_attention_is_pytorchs(name):
    import torch

    score_mod, mask_mod = MODS[name]
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=(2, heads, n, 4)) for heads, n in ((4, 5), (2, 6), (2, 6))]
    results = []
    for library in (kiln, torch):
        q, k, v = (library.from_numpy(x.copy()) for x in arrays)
        mask = None
        if mask_mod is not None:
            mask = flex(library).create_block_mask(mask_mod, 2, None, 5, 6, device="cpu")
        output, aux = flex(library).flex_attention(
            q, k, v, score_mod, mask, enable_gqa=True, return_aux=flex(library).AuxRequest(lse=True)
        )
        results.append((output, aux.lse))
    for ours, theirs in zip(*results):
        close(ours, theirs)


def test_flex_attention_has_gradients():
    q, k, v = (kiln.randn(1, 2, 3, 4, dtype=kiln.float64, requires_grad=True) for _ in range(3))
    slopes = kiln.randn(2, dtype=kiln.float64, requires_grad=True)
    mask = flex(kiln).create_block_mask(lambda b, h, i, j: i >= j, None, None, 3, 3)

    def attend(q, k, v, slopes):
        return flex(kiln).flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h] * (i - j), mask)

    assert kiln.autograd.gradcheck(attend, (q, k, v, slopes))
    expected = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(flex(kiln).flex_attention(q, k, v, block_mask=mask), expected)


def test_masks_of_flex_attention(lib):
    found = flex(lib)
    masks = (lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    rows, columns = np.indices((4, 5))
    for mod, expected in (
        (found.and_masks(*masks), (rows >= columns) & (rows - columns < 2)),
        (found.or_masks(*masks), np.ones((4, 5))),
        (found.noop_mask, np.ones((4, 5))),
    ):
        mask = found.create_mask(mod, 2, None, 4, 5, device="cpu")
        assert mask.shape == (2, 1, 4, 5) and (mask[1, 0].numpy() == expected).all()


def test_flex_attention_refuses():
    x = kiln.ones(1, 2, 3, 4)
    attend = flex(kiln).flex_attention
    with pytest.raises(ValueError, match="4 dims"):
        attend(x[0], x, x)
    with pytest.raises(ValueError, match="enable_gqa"):
        attend(x, x[:, :1], x[:, :1])
    mask = flex(kiln).create_block_mask(flex(kiln).noop_mask, None, None, 2, 3)
    with pytest.raises(ValueError, match="2 queries"):
        attend(x, x, x, block_mask=mask)


# ---- grouped_mm


@pytest.mark.parametrize("shapes", [
    ((6, 8), (3, 8, 16), [1, 4, 6]),
    ((3, 4, 8), (8, 24), [8, 8, 24]),
    ((8, 8), (8, 16), [2, 3, 8]),
    ((3, 4, 8), (3, 8, 16), None),
])  # fmt: skip
def test_grouped_mm(shapes):
    *shapes, ends = shapes
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=shape) for shape in shapes)
    offs = None if ends is None else kiln.tensor(ends, dtype=kiln.int32)
    given = [kiln.from_numpy(x.copy()).requires_grad_() for x in (a, b)]
    found = nn.functional.grouped_mm(*given, offs=offs)
    groups = list(zip([0, *(ends or [])], ends or []))
    if ends is None:
        expected = a @ b
    elif a.ndim == 2 and b.ndim == 3:
        expected = np.concatenate([a[i:j] @ b[g] for g, (i, j) in enumerate(groups)])
    elif a.ndim == 3:
        expected = np.concatenate([a[g] @ b[:, i:j] for g, (i, j) in enumerate(groups)], 1)
    else:
        expected = np.stack([a[:, i:j] @ b[i:j] for i, j in groups])
    np.testing.assert_allclose(found.detach().numpy(), expected)
    assert kiln.autograd.gradcheck(lambda x, y: nn.functional.grouped_mm(x, y, offs=offs), given)
    assert nn.functional.grouped_mm(*given, offs=offs, out_dtype=kiln.float32).dtype == kiln.float32
    with pytest.raises(ValueError, match="offs"):
        nn.functional.grouped_mm(*given, offs=kiln.tensor([1]) if offs is None else None)
