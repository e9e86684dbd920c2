"""Rates of one device beside PyTorch's on the same device: script/gpu_check runs it.

    python bench/python/gpu.py --device cuda [--quick]

Prints a row for each: microseconds of Kiln, of PyTorch (where it is installed and has the device), and
what is counted: GB/s, TFLOP/s or nothing. Every time is the least of seven, each a loop that ends by
waiting for the device.
"""

import argparse
import time

import kiln


def best(library, run, synchronize, seconds):
    """Microseconds of one run."""
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
        count *= 2
    times = [took / count]
    for _ in range(6):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        synchronize()
        times.append((time.perf_counter() - begin) / count)
    return min(times) * 1e6


def rows(lib, device, quick):
    """(name, what to run, bytes moved, operations) for a library with PyTorch's names."""
    n = 1 << (16 if quick else 26)  # 256 MB of float32
    side = 64 if quick else 4096
    x = lib.ones(n, device=device)
    y = lib.ones(n, device=device)
    small = lib.ones(8, device=device)
    wide = lib.ones(max(n // 1024, 1), 1024, device=device)
    functional = lib.nn.functional
    yield "small add (launch)", lambda: small + small, 0, 0
    yield "add", lambda: x + y, 12 * n, 0
    yield "copy", lambda: x.clone(), 8 * n, 0
    yield "sum", lambda: x.sum(), 4 * n, 0
    yield "softmax of 1024", lambda: wide.softmax(1), 8 * n, 0
    yield "layer norm of 1024", lambda: functional.layer_norm(wide, (1024,)), 8 * n, 0
    for dtype in (lib.float32, lib.bfloat16):
        a = lib.ones(side, side, device=device).to(dtype)
        yield f"product {side}, {dtype}".replace("torch.", "").replace("kiln.", ""), (
            lambda a=a: a @ a
        ), 0, 2 * side**3
    shape = (2, 4, 64, 32) if quick else (8, 16, 2048, 64)
    q = lib.ones(*shape, device=device).to(lib.bfloat16)
    flops = 4 * shape[0] * shape[1] * shape[2] ** 2 * shape[3] / 2
    yield "attention, causal, bf16", (
        lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    ), 0, flops


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    seconds = 0.02 if options.quick else 0.7
    runtime = getattr(kiln, options.device)
    print(runtime.get_device_name())
    peer = {}
    try:
        import torch

        if options.device == "cuda" and torch.cuda.is_available():
            for name, run, _, _ in rows(torch, "cuda", options.quick):
                peer[name] = best(torch, run, torch.cuda.synchronize, seconds)
    except ImportError:
        pass
    print(f"{'':34}{'Kiln us':>12}{'PyTorch us':>12}  rate of Kiln")
    for name, run, moved, operations in rows(kiln, options.device, options.quick):
        took = best(kiln, run, runtime.synchronize, seconds)
        rate = f"{moved / took / 1e3:.1f} GB/s" if moved else ""
        if operations:
            rate = f"{operations / took / 1e6:.2f} TFLOP/s"
        other = f"{peer[name]:12.2f}" if name in peer else f"{'':>12}"
        print(f"{name:34}{took:12.2f}{other}  {rate}")


if __name__ == "__main__":
    main()
