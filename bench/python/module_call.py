"""What calling a module costs over calling its forward, beside PyTorch where it is installed.

Promise: under 0.6 of PyTorch's. Usage: .venv/bin/python bench/python/module_call.py
"""

import importlib.util
import time

import kiln


def make(library):
    class Empty(library.nn.Module):
        def forward(self, x):
            return x

    return Empty()


def cost(function, x, calls=200_000, rounds=7):
    """Nanoseconds for a call: the fastest of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(calls):
            function(x)
        best = min(best, (time.perf_counter_ns() - start) / calls)
    return best


def overhead(library):
    module = make(library)
    x = library.ones(1)
    forward, call = module.forward, module
    plain = cost(forward, x)
    return plain, cost(call, x) - plain


def main():
    plain, mine = overhead(kiln)
    print(f"plain forward {plain:6.0f} ns")
    print(f"kiln          {mine:6.0f} ns more for a call of the module")
    if importlib.util.find_spec("torch") is None:
        print("no PyTorch in this environment (script/bootstrap --peers)")
        return
    import torch

    _, theirs = overhead(torch)
    print(f"torch         {theirs:6.0f} ns more; kiln / torch = {mine / theirs:.2f} (promise 0.6)")


if __name__ == "__main__":
    main()
