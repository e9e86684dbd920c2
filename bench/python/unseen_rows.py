"""The rows of `script/bench sweep --unseen`: shapes drawn at random in the ranges of everyday models.

A row is as in sweep_rows.py. Sizes are drawn evenly on a logarithmic scale; what must divide
something (groups, heads) is drawn first and multiplied. The same seed gives the same rows.
"""

import math
import random
import re

# What one call may compute and hold, so that a round takes milliseconds.
MOST_MULTIPLY_ADDS = 1.5e9
MOST_ELEMENTS = 4e6


def drawn(seed, count):
    """`count` rows, the kinds in turn."""
    dice = random.Random(seed)
    rows = []
    while len(rows) < count:
        row = KINDS[len(rows) % len(KINDS)](dice)
        if row is not None:
            rows.append(row)
    return rows


def size(dice, low, high):
    """A whole number, as often of one magnitude as of another."""
    return min(high, max(low, round(math.exp(dice.uniform(math.log(low), math.log(high + 1))))))


def fits(multiply_adds, *shapes):
    return multiply_adds <= MOST_MULTIPLY_ADDS and all(math.prod(s) <= MOST_ELEMENTS for s in shapes)


def convolution(dice):
    dims = dice.choice((1, 2, 2, 2, 2, 3))
    kind = dice.choice(("plain", "plain", "pointwise", "depthwise", "grouped", "first"))
    kernel = 1 if kind == "pointwise" else dice.choice((3, 3, 3, 5, 7))
    stride = dice.choice((1, 1, 1, 2))
    dilation = dice.choice((1, 1, 1, 1, 2)) if kernel > 1 else 1
    padding = dice.choice((0, dilation * (kernel - 1) // 2, dilation * (kernel - 1) // 2))
    groups = {"depthwise": 0, "grouped": dice.choice((2, 4, 8, 32))}.get(kind, 1)
    channels = 3 if kind == "first" else size(dice, 8, 768 if dims < 3 else 96)
    out = size(dice, 8, 768 if dims < 3 else 96)
    if groups == 0:
        groups = out = channels
    channels, out = (max(1, c // groups) * groups for c in (channels, out))
    reach = dilation * (kernel - 1) + 1
    sizes = [size(dice, reach, {1: 4000, 2: 128, 3: 32}[dims]) for _ in range(dims)]
    if dims == 2 and dice.random() < 0.7:
        sizes[1] = sizes[0]
    batch = size(dice, 1, 32)
    result = [(s + 2 * padding - reach) // stride + 1 for s in sizes]
    x, w = (batch, channels, *sizes), (out, channels // groups, *[kernel] * dims)
    work = batch * math.prod(result) * math.prod(w)
    if min(result) < 1 or not fits(work, x, w, (batch, out, *result)):
        return None
    call = f"F.conv{dims}d(x, w, b, {stride}, {padding}, {dilation}, {groups})"
    return f"conv {kind}", {"x": x, "w": w, "b": (out,)}, call, "x w b"


def product(dice):
    m, n, k = (size(dice, 1, 2048) for _ in range(3))
    batch = dice.choice((0, 0, size(dice, 2, 256)))
    a = (batch, m, k) if batch else (m, k)
    b = (batch, k, n) if batch else (k, n)
    if not fits(max(batch, 1) * m * n * k, a, b, (max(batch, 1), m, n)):
        return None
    form = dice.choice(("a @ b", "a @ b", "left", "right", "linear"))
    swapped = lambda s: (*s[:-2], s[-1], s[-2])
    if form == "left":
        return "product", {"a": swapped(a), "b": b}, "torch.matmul(a.mT, b)", "a b"
    if form == "right":
        return "product", {"a": a, "b": swapped(b)}, "torch.matmul(a, b.mT)", "a b"
    if form == "linear":
        return "product", {"a": a, "b": (n, k), "c": (n,)}, "F.linear(a, b, c)", "a b c"
    return "product", {"a": a, "b": b}, "torch.matmul(a, b)", "a b"


def norm(dice):
    batch = size(dice, 1, 64)
    kind = dice.choice(("batch_norm", "group_norm", "layer_norm", "rms_norm", "softmax", "log_softmax"))
    if kind in ("batch_norm", "group_norm"):
        groups = dice.choice((1, 2, 4, 8, 16, 32))
        c = groups * size(dice, 1, 512 // groups)
        height, width = size(dice, 2, 112), size(dice, 2, 112)
        x = (batch, c, height, width)
        if not fits(0, x):
            return None
        if kind == "group_norm":
            return "norm", {"x": x, "w": (c,), "b": (c,)}, f"F.group_norm(x, {groups}, w, b)", "x w b"
        names = {"x": x, "m": (c,), "v": f"torch.ones({c})", "w": (c,), "b": (c,)}
        return "norm", names, f"F.batch_norm(x, m, v, w, b, {dice.random() < 0.8})", "x w b"
    width = size(dice, 4, 4096)
    x = (batch, size(dice, 1, 512), width)
    if not fits(0, x):
        return None
    if kind == "layer_norm":
        return "norm", {"x": x, "w": (width,), "b": (width,)}, f"F.layer_norm(x, ({width},), w, b)", "x w b"
    if kind == "rms_norm":
        return "norm", {"x": x, "w": (width,)}, f"F.rms_norm(x, ({width},), w)", "x w"
    return "norm", {"x": x}, f"F.{kind}(x, {dice.choice((-1, -1, 1))})", "x"


def attention(dice):
    batch, heads = size(dice, 1, 16), size(dice, 1, 16)
    width = dice.choice((16, 32, 40, 64, 64, 80, 96, 128))
    keys = size(dice, 8, 1024)
    queries = dice.choice((keys, keys, size(dice, 8, 1024), 1))
    q, k = (batch, heads, queries, width), (batch, heads, keys, width)
    if not fits(2 * batch * heads * queries * keys * width, q, k):
        return None
    option = dice.choice(("", ", is_causal=True", ", m")) if keys == queries else dice.choice(("", ", m"))
    names = {"q": q, "k": k, "v": k}
    if option == ", m":
        names["m"] = (queries, keys)
    return "attention", names, f"F.scaled_dot_product_attention(q, k, v{option})", "q k v"


def indexing(dice):
    rows, width, count = size(dice, 8, 50000), size(dice, 1, 768), size(dice, 1, 50000)
    if not fits(0, (rows, width), (count, width)):
        return None
    i = f"randint({rows}, {count})"
    wide = f"randint({rows}, {count} * {width}).reshape({count}, {width})"
    call, index, names = dice.choice(
        (
            ("x[i]", i, {}),
            ("torch.index_select(x, 0, i)", i, {}),
            ("F.embedding(i, x)", i, {}),
            ("torch.gather(x, 0, i)", wide, {}),
            ("torch.index_add(x, 0, i, y)", i, {"y": (count, width)}),
            ("torch.scatter_add(x, 0, i, y)", wide, {"y": (count, width)}),
        )
    )
    return "indexing", {"x": (rows, width), "i": index, **names}, call, " ".join(["x", *names])


def moving(dice):
    """Elements that only change their places."""
    batch, channels, height, width = size(dice, 1, 32), size(dice, 1, 128), size(dice, 4, 128), size(dice, 4, 128)
    x = (batch, channels, height, width)
    if not fits(0, x):
        return None
    block = dice.choice((2, 2, 3, 4))
    at = dice.choice((1, 2, 3))
    pads = ", ".join(str(dice.randrange(1, 4)) for _ in range(4))
    mode = dice.choice(("constant", "reflect", "replicate", "circular"))
    call, names = dice.choice(
        (
            ("x.permute(0, 2, 1, 3).contiguous()", {"x": x}),
            ("x.permute(0, 2, 3, 1).contiguous()", {"x": x}),
            ("x.permute(0, 3, 1, 2).contiguous()", {"x": x}),
            ("x.mT.contiguous()", {"x": x}),
            (f"F.pixel_shuffle(x, {block})", {"x": (batch, channels * block**2, height // 2, width // 2)}),
            (f"F.pixel_unshuffle(x, {block})", {"x": (batch, channels, height // 2 * block, width // 2 * block)}),
            (f"torch.flip(x, ({at},))", {"x": x}),
            (f"torch.roll(x, {dice.randrange(1, height)}, {at})", {"x": x}),
            (f"F.pad(x, ({pads}), mode='{mode}')", {"x": x}),
            (f"F.unfold(x, {block}, padding=1)", {"x": x}),
            (f"x.repeat_interleave({block}, {at})", {"x": x}),
            (f"x.tile({block}, 1, 1)", {"x": x}),
            (f"torch.cat([x, y], {at})", {"x": x, "y": x}),
            (f"torch.stack([x, y], {at})", {"x": x, "y": x}),
            (f"torch.cat(x.chunk(2, {at})[::-1], {at})", {"x": x}),
            ("x.tril()", {"x": x}),
        )
    )
    if not all(fits(4 * math.prod(s) if "unfold" in call else 0, s) for s in names.values()):
        return None
    return "moving", names, call, " ".join(names)


def layout(dice):
    """Elementwise ops of every dtype, on tensors that lie another way."""
    shape = dice.choice(
        (
            (size(dice, 8, 2000), size(dice, 8, 2000)),
            (size(dice, 1, 32), size(dice, 2, 64), size(dice, 4, 64), size(dice, 4, 64)),
        )
    )
    if not fits(0, shape):
        return None
    dtype = dice.choice(("float32", "float32", "float64", "bfloat16"))
    lie = dice.choice(("{}", "{}.mT", "{}.mT", "{}[..., 1:]", "{}[..., ::2]", "{}.transpose(0, 1)"))
    form = dice.choice(
        (
            "{x} * 2 + 1", "{x}.relu()", "{x}.exp()", "F.gelu({x})", "F.softplus({x})", "F.elu({x})",
            "{x}.clamp(-1, 1)", "{x}.sum(-1)", "{x}.softmax(-1)", "{x} + {y}", "{x} * {y}",
            "torch.maximum({x}, {y})", "torch.atan2({x}, {y})", "F.mse_loss({x}, {y})",
            "F.smooth_l1_loss({x}, {y})", "F.binary_cross_entropy_with_logits({x}, {y})",
            "torch.where({x} > 0, {x}, {y})", "{x}.masked_fill({x} > 0, 0.0)",
            "torch.addcmul({x}, {y}, {z})", "torch.lerp({x}, {y}, {z})",
        )
    )  # fmt: skip
    names = [name for name in "xyz" if f"{{{name}}}" in form]
    call = form.format(**{name: lie.format(name) for name in "xyz"})
    return "layout", {n: f"randn{shape}.to(torch.{dtype})" for n in names}, call, " ".join(names)


def transform(dice):
    rows, n = size(dice, 1, 2000), size(dice, 4, 5000)
    if not fits(0, (rows, n)):
        return None
    if dice.random() < 0.3:
        side = size(dice, 8, 300)
        images = (size(dice, 1, 16), side, dice.choice((side, size(dice, 8, 300))))
        return "transform", {"x": images}, f"torch.fft.{dice.choice(('fft2', 'rfft2'))}(x).abs()", ""
    return "transform", {"x": (rows, n)}, f"torch.fft.{dice.choice(('fft', 'rfft', 'ifft'))}(x).abs()", ""


def integers(dice):
    """Ops of integers and bools, and casts from and to them."""
    rows, columns = size(dice, 1, 2000), size(dice, 4, 2000)
    if not fits(0, (rows, columns)):
        return None
    dtype = dice.choice(("int64", "int64", "int32", "int16", "uint8", "bool"))
    end = 2 if dtype == "bool" else dice.choice((5, 100, 100))
    other = dice.choice(("float32", "float64", "bfloat16", "int64", "int32", "uint8", "bool"))
    any_kind = (
        "x == y", "x != y", "x.sum()", "x.sum(0)", "x.sum(1)", "x.cumsum(1)", "x.any(1)", "x.all()",
        "torch.where(m, x, y)", "x[m]", "torch.sort(x, stable=True, dim=1)[1]", "x.flip(1)", "x.t().contiguous()",
        "torch.cat([x, y], 1)", "x.roll(3, 1)", "x.repeat(1, 2)", "x.tril()", "torch.count_nonzero(x, 1)",
        f"x.to(torch.{other})", f"x.to(torch.{other})", "F.pad(x, (1, 1))", "x.unique()",
    )  # fmt: skip
    numbers = (
        "x + y", "x * y", "x - 1", "x * 3", "-x", "x // 3", "x % 7", "x // (y + 1)", "x % (y + 1)", "x / (y + 1)",
        "x < y", "x < 5", "x.clamp(3, 40)", "torch.maximum(x, y)", "x.add_(0)", "x.amax(1)", "x.amax(0)",
        "x.argmax(1)", "x.max(1)[0]", "x.cummax(1)[0]", "x.topk(3, 1)[0]", "x & y", "x ^ y", "x << 1", "x >> 1",
        "torch.bincount(x.reshape(-1))", "torch.diff(x, dim=1)", "torch.isin(x, torch.tensor([1, 3, 7]))",
        "x.float().mean()", "F.one_hot(x[:, 0].to(torch.int64), 100)",
    )  # fmt: skip
    call = dice.choice(any_kind + ("x & y", "x | y", "~x") if dtype == "bool" else any_kind + numbers)
    made = f"randint({end}, {rows * columns}).reshape({rows}, {columns}).to(torch.{dtype})"
    mask = f"randint(2, {rows * columns}).reshape({rows}, {columns}).to(torch.bool)"
    used = set(re.findall(r"\b[xym]\b", call))
    specs = {"x": made, "y": made, "m": mask}
    return "integers", {name: spec for name, spec in specs.items() if name in used}, call, ""


def points(dice):
    """Rows of a few numbers, such as points and boxes, or a few columns."""
    n, c = size(dice, 20, 30000), size(dice, 2, 12)
    smooth = (
        "x + v", "x * w", "(x - y).square().sum(-1)", "x.sum(1)", "x.sum(0)", "x.mean(1)", "x.mean(0)", "x.var(1)",
        "x.std(0)", "x.amax(1)", "x.norm(dim=1)", "F.normalize(x, dim=1)", "x.softmax(1)", "x.log_softmax(1)",
        "x.logsumexp(1)", "x.cumsum(1)", "x.cumsum(0)", "x.cumprod(1)", "x.prod(1)", "x @ m", "x @ v",
        "F.linear(x, m, v)", "b @ b.mT", "(b @ x[:, :, None])[:, :, 0]", "torch.einsum('nij,nj->ni', b, x)",
        f"F.layer_norm(x, ({c},))", "F.cross_entropy(x, t)", "x[i]", "x.gather(1, t[:, None])", "x[:, 0].exp()",
        "x.t().contiguous()", "torch.cat([x, w], 1)", "torch.stack([x, y], 1)", "F.pad(x, (0, 1))",
        "torch.where(x > 0, x, y)", "F.mse_loss(x, y)", "F.cosine_similarity(x, y)", "x[:, :, None] * y[:, None, :]",
        "x.diff(dim=0)", "x.repeat_interleave(2, 0)", "torch.lerp(x, y, w)", "b.diagonal(dim1=1, dim2=2).sum(-1)",
        "torch.index_add(x, 0, i, y)", "torch.linalg.det(b)", "torch.linalg.inv(b + 9 * torch.eye(%d))" % c,
    )  # fmt: skip
    others = (
        "x.argmax(1)", "x.argmin(0)", "x.sort(1)[0]", "x.sort(1)[1]", "x.sort(0)[0]", "x.topk(2, 1)[0]",
        "x.median(1)[0]", "x.kthvalue(2, 1)[0]", "x.cummax(0)[0]", "x.cummin(1)[0]", "(x > 0).any(1)",
        "(x > 0).sum(1)", "(x > 0).all(0)", "x[x[:, 0] > 0]", "x.flip(1)", "x.roll(1, 1)", "F.one_hot(t, %d)" % c,
        "torch.bincount(t)", "x.round().to(torch.int64)", "x.isnan().any()", "x.max(1)[1]", "x.min(0)[0]",
        "torch.searchsorted(v.sort()[0], x)", "t.unique()", "torch.cdist(x[:200], y[:200])",
    )  # fmt: skip
    call = dice.choice(smooth + others)
    shapes = {"x": (n, c), "y": (n, c), "v": (c,), "w": (n, 1), "m": (c, c), "b": (n, c, c),
              "t": f"randint({c}, {n})", "i": f"randint({n}, {n})"}  # fmt: skip
    used = set(re.findall(r"(?<![\w.'])[xyvwmbti](?![\w'])", call))
    if not fits(0, *((n, c, c) for _ in "b" if "b" in used or "None] * y" in call)):
        return None
    specs = {name: spec for name, spec in shapes.items() if name in used}
    first = "x" if "x" in specs else next(iter(specs))
    return "points", specs, call, first if call in smooth and dice.random() < 0.6 else ""


def tables(dice):
    """Many rows of some features: data of tables, nodes of graphs, tokens before they are split up."""
    n, c, k = size(dice, 1000, 200000), size(dice, 4, 128), size(dice, 3, 128)
    smooth = (
        "x + v", "x * w", "x - x.mean(0)", "(x - v) / z", "x.sum(0)", "x.sum(1)", "x.mean(0)", "x.var(0)",
        "x.norm(dim=1)", "F.normalize(x, dim=1)", "x.softmax(1)", "x.log_softmax(1)", "F.cross_entropy(x, t)",
        f"F.layer_norm(x, ({c},), z, v)", "F.batch_norm(x, None, None, z, v, True)",
        "F.batch_norm(x, v, z, v, z, False)", "F.linear(x, m, u)", "F.gelu(F.linear(x, m, u))",
        "F.relu(F.linear(x, m, u))", "x @ v", "w[:, 0] @ x", "x.t() @ y", "x.t() @ x", "torch.einsum('nc,nc->n', x, y)",
        "torch.einsum('nc,kc->nk', x, m)", "torch.cat([x, y], 1)", "torch.cat([x, w], 1)", "torch.stack([x, y], 1)",
        f"x[:, :{c // 2}].contiguous()", "x.t().contiguous()", "x[i]", "x.gather(1, t[:, None])",
        "F.mse_loss(x, y)", "F.cosine_similarity(x, y)", "x.sigmoid()", "F.silu(x) * y", "torch.where(x > 0, x, y)",
        "torch.where(w > 0, x, y)", "x.cumsum(0)", "torch.index_add(x, 0, i, y)", "F.embedding(t, x)",
        "(x - y).square().sum(1)", "x.amax(1)", "x.logsumexp(1)", "F.dropout(x, 0.1)", "x.chunk(2, 1)[0].exp()",
    )  # fmt: skip
    others = (
        "x.argmax(1)", "x.max(1)[0]", "x.topk(3, 1)[0]", "x[x[:, 0] > 0]", "x.argmax(0)", "x.clamp(-1, 1)",
        "(x > 0).sum(0)", "x.median(1)[0]", "torch.bincount(t)", f"F.one_hot(t, {c})", "x.isnan().any()",
        "(x > v).any(1)", "x.std(0)", "x.round().to(torch.int32)", "x.to(torch.float64)",
    )  # fmt: skip
    call = dice.choice(smooth + others)
    shapes = {"x": (n, c), "y": (n, c), "v": (c,), "z": f"randn({c}).abs() + 0.5", "w": (n, 1), "m": (k, c), "u": (k,),
              "t": f"randint({c}, {n})", "i": f"randint({n}, {n})"}  # fmt: skip
    if not fits(n * c * (c if ".t() @" in call else k), (n, c), (n, k)):
        return None
    used = set(re.findall(r"(?<![\w.'])[xyvzwmuti](?![\w'])", call))
    specs = {name: spec for name, spec in shapes.items() if name in used}
    first = "x" if "x" in specs else next(iter(specs))
    return "tables", specs, call, first if call in smooth and dice.random() < 0.5 else ""


KINDS = (
    convolution, convolution, product, norm, attention, indexing, moving, layout, layout, transform, integers,
    integers, points, points, tables, tables,
)  # fmt: skip
