"""kiln.compile beside eager Kiln, and PyTorch eager and compiled where it is installed.

    ./script/bench graphs                  all rows
    ./script/bench graphs --rows chain     those whose name has this in it
    ./script/bench graphs --threads 1 --seconds 1
    ./script/bench graphs --no-compile     without torch.compile, whose first calls take long

Times are the best of many calls, in microseconds; all sides are measured in turn.
"""

import argparse
import math
import time
import warnings

import kiln

try:
    import torch
except ImportError:
    torch = None


def chain(lib, n):
    x = lib.randn(n)

    def f(x):
        for _ in range(5):  # 20 elementwise ops
            x = (x * 1.01).sin() + x * 0.5
        return x

    return f, (x,)


def gelu(lib, n):
    x, w, b, r = (lib.randn(n) for _ in range(4))

    def f(x, w, b, r):
        y = x * w + b
        return 0.5 * y * (1.0 + (0.7978845608 * (y + 0.044715 * y * y * y)).tanh()) + r

    return f, (x, w, b, r)


def network(lib, sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        layers += [lib.nn.Linear(a, b), lib.nn.Tanh()]
    return lib.nn.Sequential(*layers[:-1])


def inference(lib, sizes, batch):
    net = network(lib, sizes)
    return (lambda x: net(x)), (lib.randn(batch, sizes[0]),)


def training(lib, sizes, batch):
    net = network(lib, sizes)
    optimizer = lib.optim.AdamW(net.parameters(), lr=1e-4)

    def step(x, y):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, (lib.randn(batch, sizes[0]), lib.randn(batch, sizes[-1]))


def pinn(lib, points):
    net = network(lib, [2, 64, 64, 64, 1])
    optimizer = lib.optim.AdamW(net.parameters(), lr=1e-4)

    def step(given):
        optimizer.zero_grad()
        x = given.detach().requires_grad_()
        u = net(x)
        du = lib.autograd.grad(u.sum(), x, create_graph=True)[0]
        dxx = lib.autograd.grad(du[:, 0].sum(), x, create_graph=True)[0][:, 0]
        dyy = lib.autograd.grad(du[:, 1].sum(), x, create_graph=True)[0][:, 1]
        loss = (dxx + dyy - u[:, 0]).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, (lib.randn(points, 2),)


# Name; what makes it; whether gradients are wanted; whether torch.compile takes it.
ROWS = [
    ("chain of 20, 64 Ki", lambda lib: chain(lib, 1 << 16), False, True),
    ("chain of 20, 1 Mi", lambda lib: chain(lib, 1 << 20), False, True),
    ("chain of 20, 16 Mi", lambda lib: chain(lib, 1 << 24), False, True),
    ("gelu(x w + b) + r, 1 Mi", lambda lib: gelu(lib, 1 << 20), False, True),
    ("gelu(x w + b) + r, 16 Mi", lambda lib: gelu(lib, 1 << 24), False, True),
    ("MLP 16-32-4 inference, batch 1", lambda lib: inference(lib, [16, 32, 4], 1), False, True),
    (
        "MLP 256x256 inference, batch 256",
        lambda lib: inference(lib, [64, 256, 256, 8], 256),
        False,
        True,
    ),
    ("MLP 16-32-4 step, batch 8", lambda lib: training(lib, [16, 32, 4], 8), True, False),
    ("MLP 256x256 step, batch 256", lambda lib: training(lib, [64, 256, 256, 8], 256), True, False),
    ("PINN step, 3x64, 1000 points", lambda lib: pinn(lib, 1000), True, False),
    ("PINN step, 3x64, 10000 points", lambda lib: pinn(lib, 10000), True, False),
]


def once(f, args, grad, lib):
    if grad:
        return f(*args)
    with lib.no_grad():
        return f(*args)


def best_of(sides, seconds):
    """The shortest call of each side, in seconds; measured in turn."""
    best = [math.inf] * len(sides)
    for side in sides:
        for _ in range(3):
            side()
    end = time.perf_counter() + seconds * len(sides)
    while time.perf_counter() < end:
        for i, side in enumerate(sides):
            start = time.perf_counter()
            side()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def sides_of(make, grad, torch_compiles, use_compile):
    def side(lib, wrap):
        f, args = make(lib)
        f = wrap(f)
        return lambda: once(f, args, grad, lib)

    out = {"eager": side(kiln, lambda f: f), "compiled": side(kiln, kiln.compile)}
    if torch is not None:
        out["torch"] = side(torch, lambda f: f)
        if torch_compiles and use_compile:
            out["torch.compile"] = side(torch, torch.compile)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each side of a row")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    options = parser.parse_args()
    if options.threads:
        kiln.set_num_threads(options.threads)
        if torch is not None:
            torch.set_num_threads(options.threads)
    print(f"{'row':36} {'eager':>10} {'compiled':>10} {'torch':>10} {'t.compile':>10} {'gain':>6}")
    for name, make, grad, torch_compiles in ROWS:
        if options.rows not in name:
            continue
        sides = sides_of(make, grad, torch_compiles, not options.no_compile)
        names = list(sides)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                times = best_of([sides[n] for n in names], options.seconds)
            except Exception as error:  # torch.compile needs a C++ compiler, which may fail
                if "torch.compile" not in sides:
                    raise
                print(f"{name}: torch.compile: {type(error).__name__}")
                del sides["torch.compile"]
                names = list(sides)
                times = best_of([sides[n] for n in names], options.seconds)
        found = dict(zip(names, times, strict=True))
        cells = [
            f"{found[n] * 1e6:10.1f}" if n in found else f"{'-':>10}"
            for n in ("eager", "compiled", "torch", "torch.compile")
        ]
        print(f"{name:36} {' '.join(cells)} {found['eager'] / found['compiled']:6.2f}", flush=True)


if __name__ == "__main__":
    main()
