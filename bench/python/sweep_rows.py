"""The rows of `script/bench sweep`: everyday shapes of the ops that compute.

A row is (group, operands, call, differentiated): `operands` maps a name to a tuple of sizes of
normally distributed floats, or to an expression; `call` is evaluated with them; `differentiated`
names the operands of which the gradient is taken too, "" for none.
"""

ROWS = []


def row(group, call, differentiated="", **operands):
    ROWS.append((group, operands, call, differentiated))


def convolution(dims, batch, channels, out, sizes, kernel, stride=1, padding=0, dilation=1, groups=1):
    row(
        f"conv{dims}d",
        f"F.conv{dims}d(x, w, b, {stride}, {padding}, {dilation}, {groups})",
        "x w b",
        x=(batch, channels, *sizes),
        w=(out, channels // groups, *[kernel] * dims),
        b=(out,),
    )


def transposed(dims, batch, channels, out, sizes, kernel, stride, padding=0, extra=0, groups=1):
    row(
        f"conv_transpose{dims}d",
        f"F.conv_transpose{dims}d(x, w, b, {stride}, {padding}, {extra}, {groups})",
        "x w b",
        x=(batch, channels, *sizes),
        w=(channels, out // groups, *[kernel] * dims),
        b=(out,),
    )


for n in (1, 16):
    # ResNet-18 and -50.
    convolution(2, n, 3, 64, (224, 224), 7, 2, 3)
    for c, s in ((64, 56), (128, 28), (256, 14), (512, 7)):
        convolution(2, n, c, c, (s, s), 3, 1, 1)
        if c > 64:
            convolution(2, n, c // 2, c, (2 * s, 2 * s), 3, 2, 1)
            convolution(2, n, c // 2, c, (2 * s, 2 * s), 1, 2)
    convolution(2, n, 64, 256, (56, 56), 1)
    convolution(2, n, 256, 64, (56, 56), 1)
    convolution(2, n, 1024, 256, (14, 14), 1)
    convolution(2, n, 512, 2048, (7, 7), 1)
    # MobileNet.
    convolution(2, n, 3, 32, (224, 224), 3, 2, 1)
    for c, s, stride in ((32, 112, 1), (96, 112, 2), (144, 56, 1), (384, 14, 1), (960, 7, 1)):
        convolution(2, n, c, c, (s, s), 3, stride, 1, 1, c)
    convolution(2, n, 144, 144, (28, 28), 5, 2, 2, 1, 144)
    convolution(2, n, 32, 192, (28, 28), 1)
    convolution(2, n, 960, 320, (7, 7), 1)
    # ResNeXt, ConvNeXt, dilation, ViT patches.
    convolution(2, n, 128, 128, (56, 56), 3, 1, 1, 1, 32)
    convolution(2, n, 96, 96, (56, 56), 7, 1, 3, 1, 96)
    convolution(2, n, 256, 256, (28, 28), 3, 1, 2, 2)
    convolution(2, n, 3, 384, (224, 224), 16, 16)
    # U-Net and GANs.
    transposed(2, n, 256, 128, (28, 28), 2, 2)
    transposed(2, n, 128, 64, (56, 56), 2, 2)
    transposed(2, n, 256, 128, (16, 16), 4, 2, 1)
    transposed(2, n, 64, 3, (32, 32), 4, 2, 1)
    transposed(2, n, 128, 64, (28, 28), 3, 2, 1, 1)
    # Audio.
    convolution(1, n, 1, 64, (16000,), 10, 5)
    convolution(1, n, 80, 384, (1500,), 3, 1, 1)
    convolution(1, n, 384, 384, (1500,), 3, 2, 1)
    convolution(1, n, 128, 128, (2000,), 5, 1, 2)
    convolution(1, n, 128, 128, (2000,), 7, 1, 9, 3)
    convolution(1, n, 256, 256, (750,), 31, 1, 15, 1, 256)
    convolution(1, n, 64, 128, (4000,), 4, 2, 1)
    convolution(1, n, 256, 512, (500,), 1)
    transposed(1, n, 256, 128, (500,), 8, 4, 2)
    # Video and volumes.
    convolution(3, n, 16, 32, (16, 32, 32), 3, 1, 1)
    convolution(3, n, 54, 54, (16, 28, 28), 3, 1, 1, 1, 54)
    convolution(3, n, 108, 108, (8, 28, 28), 5, 2, 2, 1, 108)
    if n == 1:
        convolution(3, n, 3, 64, (16, 112, 112), 3, 1, 1)
        convolution(3, n, 64, 64, (8, 56, 56), 3, 1, 1)
        convolution(3, n, 64, 128, (8, 56, 56), 3, 2, 1)
        convolution(3, n, 64, 128, (8, 28, 28), 1)
        transposed(3, n, 64, 32, (8, 16, 16), 2, 2)

for n in (1, 16):
    for call in (
        "F.max_pool2d(x, 3, 2, 1)",
        "F.max_pool2d(x, 2)",
        "F.avg_pool2d(x, 2)",
        "F.avg_pool2d(x, 3, 1, 1)",
        "F.adaptive_avg_pool2d(x, 1)",
        "F.adaptive_avg_pool2d(x, 7)",
        "F.adaptive_max_pool2d(x, 5)",
    ):
        row("pool", call, "x", x=(n, 64, 56, 56))
    row("pool", "F.max_pool2d(x, 3, 2, 1)", "x", x=(n, 64, 112, 112))
    row("pool", "F.adaptive_avg_pool2d(x, 1)", "x", x=(n, 2048, 7, 7))
    row("pool", "F.max_pool1d(x, 4)", "x", x=(n, 128, 2000))
    row("pool", "F.avg_pool1d(x, 4)", "x", x=(n, 128, 2000))
    row("pool", "F.max_pool3d(x, 2)", "x", x=(n, 16, 16, 32, 32))
    row("pool", "F.avg_pool3d(x, 2)", "x", x=(n, 16, 16, 32, 32))
    row("pool", "F.lp_pool2d(x, 2, 2)", "x", x=(n, 64, 56, 56))

for n in (1, 16):
    for c, s in ((64, 56), (512, 7)):
        x, p = (n, c, s, s), (c,)
        if n > 1:
            call = "F.batch_norm(x, m, v, w, b, True)"
            row("norm", call, "x w b", x=x, m=p, v=f"torch.ones({c})", w=p, b=p)
        call = "F.batch_norm(x, m, v, w, b, False)"
        row("norm", call, "x w b", x=x, m=p, v=f"torch.ones({c})", w=p, b=p)
        row("norm", "F.group_norm(x, 32, w, b)", "x w b", x=x, w=p, b=p)
        row("norm", "F.instance_norm(x, weight=w, bias=b)", "x w b", x=x, w=p, b=p)
    row("norm", "F.layer_norm(x, (512,), w, b)", "x w b", x=(n, 196, 512), w=(512,), b=(512,))
    row("norm", "F.layer_norm(x, (96,), w, b)", "x w b", x=(n, 784, 96), w=(96,), b=(96,))
    row("norm", "F.rms_norm(x, (512,), w)", "x w", x=(n, 196, 512), w=(512,))
    row("norm", "F.local_response_norm(x, 5)", "x", x=(n, 64, 28, 28))

for dtype in ("float32", "bfloat16", "float16"):
    for batch, heads, kv, length, width in (
        (8, 8, 8, 128, 64),
        (2, 8, 8, 512, 64),
        (1, 8, 8, 2048, 64),
        (1, 8, 2, 1024, 128),
        (16, 12, 12, 197, 64),
        (1, 8, 8, 1, 64),
    ):
        for option in ("", ", is_causal=True", ", m"):
            if length == 1 and option == ", is_causal=True":
                continue
            names = {}
            for name, h, l in (("q", heads, length), ("k", kv, max(length, 512 if length == 1 else 1))):
                names[name] = f"randn({batch}, {h}, {l}, {width}).to(torch.{dtype})"
            names["v"] = names["k"]
            keys = 512 if length == 1 else length
            if option == ", m":
                names["m"] = f"randn({length}, {keys}).to(torch.{dtype})"
            more = ", enable_gqa=True" if kv != heads else ""
            call = f"F.scaled_dot_product_attention(q, k, v{option}{more})"
            row(f"attention {dtype}", call, "q k v", **names)

for tokens, words, width in ((1024, 32000, 512), (8192, 1000, 256), (128, 50000, 768)):
    names = {"w": (words, width), "i": f"randint({words}, {tokens})"}
    row("embedding", "F.embedding(i, w)", "w", **names)
row("embedding", "F.embedding_bag(i, w)", "w", i="randint(32000, 256 * 20).reshape(256, 20)", w=(32000, 128))

# A layer of a graph network: 10,000 nodes, 100,000 edges, 64 features.
for width in (64, 16):
    row(
        "sparse",
        "torch.sparse.mm(s, w)",
        "w",
        s="torch.sparse_csr_tensor(torch.arange(0, 100001, 10), randint(10000, 100000), randn(100000), (10000, 10000))",
        w=(10000, width),
    )

for a, b in (
    ((1, 1024), (1024, 1024)),
    ((8, 1024), (1024, 4096)),
    ((64, 784), (784, 256)),
    ((16384, 16), (16, 16)),
    ((16, 16384), (16384, 16)),
    ((4096, 64), (64, 64)),
    ((64, 65536), (65536, 64)),
    ((1000, 1), (1, 1000)),
    ((1024, 1024), (1024, 1)),
    ((1024, 1024), (1024,)),
    ((127, 129), (129, 131)),
    ((333, 777), (777, 555)),
    ((512, 512), (512, 512)),
    ((3, 3), (3, 100000)),
    ((100000, 3), (3, 3)),
    ((1024, 4, 4), (1024, 4, 4)),
    ((1024, 8, 8), (1024, 8, 8)),
    ((512, 16, 16), (512, 16, 16)),
    ((64, 32, 64), (64, 64, 32)),
    ((64, 128, 64), (64, 64, 128)),
    ((8, 256, 256), (8, 256, 256)),
    ((1024, 1, 64), (1024, 64, 64)),
    ((1024, 64, 64), (1024, 64, 1)),
    ((32, 100, 64), (64, 10)),
):
    row("matmul", "torch.matmul(a, b)", "a b", a=a, b=b)
row("matmul", "torch.matmul(a.t(), b)", "a b", a=(512, 300), b=(512, 400))
row("matmul", "torch.matmul(a, b.t())", "a b", a=(300, 512), b=(400, 512))
row("matmul", "torch.matmul(a.t(), b.t())", "a b", a=(512, 300), b=(400, 512))
row("matmul", "torch.matmul(a[:, ::2], b)", "a b", a=(300, 1024), b=(512, 400))
row("matmul", "torch.matmul(a, b[::2])", "a b", a=(300, 512), b=(1024, 400))
row("matmul", "torch.matmul(a.transpose(1, 2), b)", "a b", a=(64, 64, 128), b=(64, 64, 128))
row("matmul", "torch.bmm(a, b.transpose(1, 2))", "a b", a=(64, 128, 64), b=(64, 128, 64))
row("matmul", "F.linear(x, w, b)", "x w b", x=(64, 784), w=(256, 784), b=(256,))
row("matmul", "F.linear(x, w, b)", "x w b", x=(1, 512), w=(2048, 512), b=(2048,))
row("matmul", "F.linear(x, w, b)", "x w b", x=(8, 128, 256), w=(768, 256), b=(768,))
row("matmul", "F.bilinear(x, y, w, b)", "x y w b", x=(128, 32), y=(128, 48), w=(64, 32, 48), b=(64,))
row("matmul", "torch.baddbmm(c, a, b)", "a b c", c=(64, 32, 32), a=(64, 32, 64), b=(64, 64, 32))
row("matmul", "torch.addmm(c, a, b)", "a b c", c=(300, 400), a=(300, 512), b=(512, 400))
row("matmul", "torch.outer(a, b)", "a b", a=(1000,), b=(1000,))
row("matmul", "torch.dot(a, b)", "a b", a=(100000,), b=(100000,))
for dtype in ("float64", "complex64", "bfloat16", "float16"):
    for n in (64, 256, 512):
        names = {k: f"randn({n}, {n}).to(torch.{dtype})" for k in "ab"}
        row("matmul", "torch.matmul(a, b)", "a b" if "comp" not in dtype else "", **names)

for equation, a, b in (
    ("bhqd,bhkd->bhqk", (8, 8, 128, 64), (8, 8, 128, 64)),
    ("bqhd,bkhd->bhqk", (8, 128, 8, 64), (8, 128, 8, 64)),
    ("bhqk,bkhd->bqhd", (8, 8, 128, 128), (8, 128, 8, 64)),
    ("bij,bjk->bik", (32, 64, 64), (32, 64, 64)),
    ("bi,bj->bij", (256, 64), (256, 64)),
    ("ijk,kl->ijl", (64, 64, 64), (64, 64)),
    ("nchw,oc->nohw", (8, 64, 28, 28), (128, 64)),
    ("bld,bnd->bln", (8, 256, 64), (8, 16, 64)),
    ("ij,ij->i", (1000, 512), (1000, 512)),
    ("ij,ij->", (1000, 512), (1000, 512)),
):
    row("einsum", f"torch.einsum('{equation}', a, b)", "a b", a=a, b=b)

for a, b in (((1000, 3), (1000, 3)), ((1000, 64), (1000, 64)), ((16, 128, 32), (16, 128, 32))):
    row("cdist", "torch.cdist(a, b)", "a b", a=a, b=b)
row("cdist", "torch.cdist(a, b, 1.0)", "a b", a=(500, 64), b=(500, 64))
row("cdist", "torch.pdist(a)", "a", a=(500, 64))

for shape in ((4096, 4, 4), (512, 16, 16), (64, 64), (128, 128), (256, 256), (512, 512)):
    square = f"randn{shape}"
    positive = f"spd{shape}"
    for call, a in (
        ("torch.linalg.cholesky(a)", positive),
        ("torch.linalg.qr(a)", square),
        ("torch.linalg.svd(a)", square),
        ("torch.linalg.svdvals(a)", square),
        ("torch.linalg.eigh(a)", positive),
        ("torch.linalg.eigvalsh(a)", positive),
        ("torch.linalg.solve(a, b)", positive),
        ("torch.linalg.inv(a)", positive),
        ("torch.linalg.det(a)", positive),
        ("torch.linalg.slogdet(a)", positive),
        ("torch.linalg.lu_factor(a)", positive),
        ("torch.linalg.matrix_exp(a)", f"{square} * 0.01"),
        ("torch.linalg.pinv(a)", positive),
        ("torch.linalg.lstsq(a, b).solution", positive),
    ):
        names = {"a": a}
        if "b)" in call:
            names["b"] = (*shape[:-1], 8)
        backward = "torch.linalg.svd(" not in call and "qr" not in call and "eigh(" not in call
        backward = backward and "factor" not in call and "lstsq" not in call and "pinv" not in call
        row("linalg", call, " ".join(names) if backward else "", **names)
row("linalg", "torch.linalg.qr(a)", "", a=(1000, 50))
row("linalg", "torch.linalg.svd(a, full_matrices=False)", "", a=(1000, 50))
row("linalg", "torch.linalg.lstsq(a, b).solution", "", a=(1000, 50), b=(1000, 4))
row("linalg", "torch.linalg.eig(a)", "", a=(128, 128))
row("linalg", "torch.linalg.matrix_power(a, 5)", "a", a="spd(128, 128) * 0.01")
for n in (64, 256):
    for call in ("solve(a, b)", "inv(a)", "eigh(a @ a.mH)", "cholesky(a @ a.mH)", "qr(a)", "svd(a)"):
        names = {"a": f"torch.complex(spd({n}, {n}), randn({n}, {n}))"}
        if "b)" in call:
            names["b"] = f"torch.complex(randn({n}, 8), randn({n}, 8))"
        row("linalg", f"torch.linalg.{call}", "", **names)

for shape in ((256, 256), (64, 1024), (16, 4096), (1, 65536), (1, 1048576), (64, 1000), (64, 997), (16, 4001), (1, 100003)):
    row("fft", "torch.fft.rfft(a)", "a", a=shape)
    row("fft", "torch.fft.fft(a)", "a", a=shape)
    row("fft", "torch.fft.fft(a)", "", a=f"torch.complex(randn{shape}, randn{shape})")
    row("fft", "torch.fft.irfft(a)", "", a=f"torch.complex(randn{shape}, randn{shape})")
for shape in ((8, 128, 128), (1, 512, 512), (4, 100, 100), (4, 97, 101)):
    row("fft", "torch.fft.fft2(a)", "a", a=shape)
    row("fft", "torch.fft.rfft2(a)", "a", a=shape)
    row("fft", "torch.fft.ifft2(a)", "", a=f"torch.complex(randn{shape}, randn{shape})")
row("fft", "torch.fft.fftn(a)", "a", a=(32, 32, 32))
row("fft", "torch.fft.fft(a, dim=0)", "a", a=(256, 256))
for batch, length, size, hop in ((1, 16000, 400, 160), (16, 16000, 400, 160), (4, 44100, 2048, 512)):
    call = f"torch.stft(x, {size}, {hop}, window=w, return_complex=True)"
    row("stft", call, "x", x=(batch, length), w=f"torch.hann_window({size})")
row(
    "stft",
    "torch.istft(x, 512, 128, window=w)",
    "",
    x="torch.complex(randn(4, 257, 300), randn(4, 257, 300))",
    w="torch.hann_window(512)",
)
