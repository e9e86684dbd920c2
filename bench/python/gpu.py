"""Rates of one device beside PyTorch's on the same device: script/gpu_check runs it.

    python bench/python/gpu.py --device cuda [--quick] [--filter TEXT] [--peer PYTHON]

Prints a row for each: microseconds of Kiln, of PyTorch (where it is installed and has the device), how
many times as fast Kiln is, and what is counted: GB/s or TFLOP/s of Kiln, and for training steps the most
memory at once. Every time is the median of seven, each a loop that ends by waiting for the device. The two libraries run
in processes of their own, one after the other. `--peer` names the Python that has PyTorch.
"""

import argparse
import gc
import json
import math
import re
import statistics
import subprocess
import sys
import time


def timed(run, synchronize, seconds):
    """Microseconds of one run."""
    for _ in range(3):
        run()
    synchronize()
    count = 1
    while True:
        begin = time.perf_counter()
        for _ in range(count):
            run()
        synchronize()
        took = time.perf_counter() - begin
        if took > seconds / 7 or count >= 1 << 16:
            break
        count = max(2 * count, min(int(count * seconds / 7 / max(took, 1e-6)), 1 << 16))
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        synchronize()
        times.append((time.perf_counter() - begin) / count)
    return statistics.median(times) * 1e6


def op_rows(lib, device, quick):
    """(name, makes what to run, bytes moved, operations) for a library with PyTorch's names."""
    n = 1 << (16 if quick else 26)  # 256 MB of float32
    functional = lib.nn.functional
    f32, bf16 = lib.float32, lib.bfloat16

    def drawn(*shape, dtype=f32, grad=False):
        x = lib.randn(*shape, device=device).to(dtype)
        return x.requires_grad_() if grad else x

    def binary():
        x, y = drawn(n), drawn(n)
        return lambda: x + y

    def unary(call, *shape, dtype=f32):
        x = drawn(*(shape or (n,)), dtype=dtype)
        return lambda: call(x)

    def small():
        x = drawn(8)
        return lambda: x + x

    yield "small add (launch)", small, 0, 0
    yield "add", binary, 12 * n, 0
    yield "copy", lambda: unary(lambda x: x.clone()), 8 * n, 0
    yield "copy, bf16", lambda: unary(lambda x: x.clone(), dtype=bf16), 4 * n, 0
    yield "to bf16", lambda: unary(lambda x: x.to(bf16)), 6 * n, 0
    yield "exp", lambda: unary(lambda x: x.exp()), 8 * n, 0
    yield "gelu, bf16", lambda: unary(functional.gelu, dtype=bf16), 4 * n, 0
    rows = max(n // 1024, 1)
    bias = drawn(1024)
    yield "add a row", lambda: unary(lambda x: x + bias, rows, 1024), 8 * n, 0
    yield "sum", lambda: unary(lambda x: x.sum()), 4 * n, 0
    yield "sum of rows", lambda: unary(lambda x: x.sum(1), rows, 1024), 4 * n, 0
    yield "sum of columns", lambda: unary(lambda x: x.sum(0), rows, 1024), 4 * n, 0
    yield "transposed copy", lambda: unary(lambda x: x.t().contiguous(), rows, 1024), 8 * n, 0
    yield "softmax of 1024", lambda: unary(lambda x: x.softmax(1), rows, 1024), 8 * n, 0
    yield "softmax of 1000, bf16", (
        lambda: unary(lambda x: x.softmax(1), rows, 1000, dtype=bf16)
    ), 4 * rows * 1000, 0
    for width in (768, 1024):
        weight, shift = drawn(width), drawn(width)
        yield f"layer norm of {width}", (
            lambda width=width, weight=weight, shift=shift: unary(
                lambda x: functional.layer_norm(x, (width,), weight, shift), n // width, width
            )
        ), 8 * n, 0

    def norm_and_gradient():
        x, weight, shift = (drawn(*s, grad=True) for s in ((n // 1024, 1024), (1024,), (1024,)))
        g = drawn(n // 1024, 1024)

        def run():
            functional.layer_norm(x, (1024,), weight, shift).backward(g)
            x.grad = weight.grad = shift.grad = None

        return run

    yield "layer norm of 1024, gradient", norm_and_gradient, 20 * n, 0

    def images(channels, side):
        x = drawn(2 if quick else 64, channels, side, side, dtype=bf16)
        return x.to(memory_format=lib.channels_last)

    def on_images(call, channels, side, backward, parameters=()):
        x = images(channels, side).requires_grad_(backward)
        parameters = [p.requires_grad_(backward) for p in parameters]

        def run():
            out = call(x, *parameters)
            if backward:
                out.backward(out.detach())
                x.grad = None
                for p in parameters:
                    p.grad = None

        return run

    channels, side = (8, 8) if quick else (256, 56)
    elements = (2 if quick else 64) * channels * side * side
    for backward in (False, True):
        yield f"batch norm of {channels}, {side} px, bf16" + ", gradient" * backward, (
            lambda backward=backward: on_images(
                lambda x, w, b: functional.batch_norm(x, None, None, w, b, True),
                channels, side, backward, [drawn(channels), drawn(channels)],
            )
        ), (16 if backward else 6) * elements, 0  # fmt: skip
    for backward in (False, True):
        pooled = elements // 4
        yield f"max pool of {channels}, {side} px, bf16" + ", gradient" * backward, (
            lambda backward=backward: on_images(
                lambda x: functional.max_pool2d(x, 3, 2, 1), channels, side, backward
            )
        ), (2 if backward else 1) * (2 * elements + 10 * pooled), 0
    classes = 128 if quick else 32768

    def loss():
        x = drawn(n // classes, classes, grad=True)
        target = lib.zeros(n // classes, dtype=lib.int64, device=device)

        def run():
            functional.cross_entropy(x, target).backward()
            x.grad = None

        return run

    yield "cross-entropy, gradient", loss, 12 * n, 0

    def optimizer(fused):
        p = lib.nn.Parameter(drawn(n))
        p.grad = drawn(n)
        adam = lib.optim.AdamW([p], lr=1e-4, **({"fused": True} if fused else {}))
        return adam.step

    yield "AdamW", lambda: optimizer(lib.__name__ == "torch"), 28 * n, 0

    def product(side, dtype):
        a, b = drawn(side, side, dtype=dtype), drawn(side, side, dtype=dtype)
        return lambda: a @ b

    for side, dtype, name in (
        *((s, bf16, "bf16") for s in ((64,) if quick else (512, 1024, 4096, 8192))),
        *((s, f32, "f32") for s in ((64,) if quick else (1024, 4096))),
    ):
        yield f"product {side}, {name}", (
            lambda side=side, dtype=dtype: product(side, dtype)
        ), 0, 2 * side**3

    def attention(shape, causal, backward):
        q, k, v = (drawn(*shape, dtype=bf16, grad=backward) for _ in range(3))
        g = drawn(*shape, dtype=bf16)

        def run():
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if backward:
                out.backward(g)
                q.grad = k.grad = v.grad = None

        return run

    shapes = (((2, 4, 64, 32), True),) if quick else (
        ((8, 16, 2048, 64), True), ((8, 16, 2048, 64), False), ((4, 16, 2048, 128), True),
    )  # fmt: skip
    for shape, causal in shapes:
        flops = 4 * math.prod(shape[:2]) * shape[2] ** 2 * shape[3] / (2 if causal else 1)
        name = f"attention {'x'.join(map(str, shape))}{', causal' if causal else ''}"
        for backward in (False, True):
            yield name + (", gradient" if backward else ""), (
                lambda shape=shape, causal=causal, backward=backward: attention(
                    shape, causal, backward
                )
            ), 0, flops * (3.5 if backward else 1)

    def conv(backward, channels, side, kernel, stride):
        x = drawn(16 if quick else 64, channels, side, side, dtype=bf16, grad=backward)
        w = drawn(channels, channels, kernel, kernel, dtype=bf16, grad=backward)
        x = x.detach().to(memory_format=lib.channels_last).requires_grad_(backward)
        w = w.detach().to(memory_format=lib.channels_last).requires_grad_(backward)

        def run():
            out = functional.conv2d(x, w, stride=stride, padding=kernel // 2)
            if backward:
                out.backward(out.detach())
                x.grad = w.grad = None

        return run

    for channels, side, kernel, stride in ((8, 8, 3, 1),) if quick else (
        (64, 56, 3, 1), (256, 14, 3, 1), (256, 56, 1, 1), (128, 56, 3, 2),
    ):  # fmt: skip
        flops = 2 * (16 if quick else 64) * channels**2 * (side // stride) ** 2 * kernel**2
        for backward in (False, True):
            yield f"conv {channels}, {side} px, {kernel}x{kernel}, stride {stride}" + (
                ", gradient" if backward else ""
            ), (
                lambda backward=backward, c=channels, s=side, k=kernel, t=stride: conv(
                    backward, c, s, k, t
                )
            ), 0, flops * (3 if backward else 1)


def gpt_step(lib, device, quick):
    """A step of AdamW of a GPT in bf16 autocast: 12 layers of 768, 16 sequences of 1024."""
    import graph_programs

    depth, width, heads, batch, length = (1, 64, 2, 2, 32) if quick else (12, 768, 12, 16, 1024)
    words = 256 if quick else 50304
    graph_programs.TOKENS = words
    net = graph_programs.gpt(lib, length, width, heads, depth).to(device).train()
    fused = {"fused": True} if lib.__name__ == "torch" else {}
    adam = lib.optim.AdamW(net.parameters(), lr=1e-4, **fused)
    x = lib.randint(0, words, (batch, length), device=device)
    y = lib.randint(0, words, (batch * length,), device=device)
    places = lib.arange(length, device=device)

    def run():
        with lib.autocast(device, dtype=lib.bfloat16):
            hidden = net.tokens(x) + net.places(places)
            for block in net.blocks:
                hidden = block(hidden)
            out = net.head(net.norm(hidden))
            loss = lib.nn.functional.cross_entropy(out.reshape(-1, words), y)
        loss.backward()
        adam.step()
        adam.zero_grad()

    return run


def resnet_step(lib, device, quick):
    """A step of SGD of a ResNet-50 in bf16 autocast: 64 images of 224 x 224."""
    batch, side = (2, 32) if quick else (64, 224)
    if lib.__name__ == "torch":
        import torchvision

        net = torchvision.models.resnet50()
    else:
        net = lib.models.resnet50()
    net = net.to(device, memory_format=lib.channels_last).train()
    sgd = lib.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    x = lib.randn(batch, 3, side, side, device=device).to(memory_format=lib.channels_last)
    y = lib.randint(0, 1000, (batch,), device=device)

    def run():
        with lib.autocast(device, dtype=lib.bfloat16):
            loss = lib.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        sgd.zero_grad()

    return run


def step_rows(lib, device, quick):
    yield "GPT step, bf16 autocast", lambda: gpt_step(lib, device, quick), 0, 0
    yield "ResNet-50 step, bf16 autocast", lambda: resnet_step(lib, device, quick), 0, 0


def one_side(name, options):
    """Prints a line of JSON for each row: its name, microseconds and bytes at most."""
    if name == "torch":
        import torch as lib
    else:
        import kiln as lib

    runtime = getattr(lib, options.device)
    forget_peak = getattr(runtime, "reset_peak_memory_stats", None) or runtime.reset_memory_stats

    def most_memory():
        if options.device == "cuda":
            return runtime.max_memory_allocated()
        return runtime.memory_stats()["peak_bytes_in_use"]

    def forget():
        runtime.empty_cache()
        forget_peak()

    seconds = 0.02 if options.quick else options.seconds
    for rows in (op_rows, step_rows):
        for row, make, moved, operations in rows(lib, options.device, options.quick):
            if not re.search(options.filter, row):
                continue
            line = {"row": row, "moved": moved, "operations": operations, "step": rows is step_rows}
            try:
                forget()
                run = make()
                line["us"] = timed(run, runtime.synchronize, seconds)
                line["bytes"] = most_memory()
            except Exception as error:  # the others are still worth knowing
                line["error"] = f"{type(error).__name__}: {error}"
            run = make = None
            gc.collect()
            print(json.dumps(line), flush=True)


def side(python, name, options):
    command = [python, __file__, "--side", name, "--device", options.device, "--filter",
               options.filter, "--seconds", str(options.seconds)]  # fmt: skip
    if options.quick:
        command.append("--quick")
    out = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            row = json.loads(line)
            out[row["row"]] = row
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--filter", default="", help="a regular expression for names of rows")
    parser.add_argument("--peer", default=sys.executable, help="the Python that has PyTorch")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row and library")
    parser.add_argument("--side", choices=("kiln", "torch"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return one_side(options.side, options)
    import kiln

    print(getattr(kiln, options.device).get_device_name())
    has_peer = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    peer = {}
    if options.device == "cuda":
        found = subprocess.run([options.peer, "-c", has_peer], capture_output=True, check=False)
        if found.returncode == 0:
            peer = side(options.peer, "torch", options)
    ours = side(sys.executable, "kiln", options)
    width = max(len(name) for name in ours)
    print(f"{'':{width}}{'Kiln us':>12}{'PyTorch us':>12}{'times':>8}  rate of Kiln")
    for name, row in ours.items():
        other = peer.get(name, {})
        if "error" in row:
            print(f"{name:{width}}  {row['error'][:200]}")
            continue
        took = row["us"]
        rate = f"{row['moved'] / took / 1e3:.0f} GB/s" if row["moved"] else ""
        if row["operations"]:
            rate = f"{row['operations'] / took / 1e6:.1f} TFLOP/s"
        if row["step"]:
            rate = f"{row['bytes'] / 1e6:.0f} MB"
            if "bytes" in other:
                rate += f", PyTorch {other['bytes'] / 1e6:.0f} MB"
        them = f"{other['us']:12.2f}{other['us'] / took:8.2f}" if "us" in other else f"{'':>20}"
        print(f"{name:{width}}{took:12.2f}{them}  {rate}")
    return None


if __name__ == "__main__":
    main()
