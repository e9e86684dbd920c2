"""Everyday shapes of the ops that compute (sweep_rows.py), forward and backward, Kiln beside PyTorch.

Usage: script/bench sweep [--unseen [--seed N] [--count N]] [--filter REGEX] [--group REGEX]
                          [--threads N] [--rounds N] [--json FILE]

--unseen draws the shapes at random instead (unseen_rows.py), others each day: what they say is not
what anybody tuned for.

As in `script/bench ops` each library has a process of its own, and they take turns. With one thread
CPU time is counted, which other programs hardly disturb; else wall time. Both sides' results and
gradients are compared before anything is timed. The ratio is PyTorch's time over Kiln's, that of
"forward" without gradients, that of "both" a forward and a backward pass. PyTorch runs as peer.py
sets it up.
"""

import argparse
import datetime
import importlib
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time

from ops import WARM_UP_NS, Worker, bound_to_parent, measure
from peer import described, environment_of, processor
from sweep_rows import ROWS
from unseen_rows import drawn


def operand(library, spec, seed):
    """A list of sizes, or an expression, as a tensor."""
    import numpy as np

    random = np.random.default_rng(seed)
    tensor = lambda x: library.from_numpy(np.ascontiguousarray(x))

    def randn(*sizes):
        return tensor(random.standard_normal(sizes, dtype=np.float32))

    def spd(*sizes):
        x = random.standard_normal(sizes, dtype=np.float32)
        return tensor(x @ x.swapaxes(-1, -2) / sizes[-1] + np.eye(sizes[-1], dtype=np.float32))

    def randint(end, count):
        return tensor(random.integers(0, end, count))

    if isinstance(spec, list):
        return randn(*spec)
    return eval(spec, {"torch": library, "randn": randn, "spd": spd, "randint": randint})


def tensors_of(result, library):
    if isinstance(result, library.Tensor):
        return [result]
    return [t for part in result for t in tensors_of(part, library)]


def summary(tensors):
    """Numbers by which the sides are compared: of each tensor its norm and its sum with weights."""
    import numpy as np

    out = []
    for t in tensors:
        t = t.detach()
        if hasattr(t, "resolve_conj"):
            t = t.resolve_conj()
        kind = str(t.dtype).split(".")[-1]
        x = (t.float() if kind in ("bfloat16", "float16") else t).numpy()
        x = x.astype(np.complex128 if kind.startswith("complex") else np.float64).ravel()
        norm = float(np.sqrt(np.mean(np.abs(x) ** 2))) if x.size else 0.0
        out.append([list(t.shape), norm, kind])
    return out


class Row:
    def __init__(self, library, row):
        self.library = library
        _, specs, call, differentiated = row
        self.specs = specs
        self.names = {"torch": library, "F": importlib.import_module(library.__name__ + ".nn.functional")}
        for i, (name, spec) in enumerate(specs.items()):
            self.names[name] = operand(library, spec, i)
        self.forward = eval("lambda: " + call, self.names)
        self.leaves = [self.names[n] for n in differentiated.split()]
        with library.no_grad():
            self.result = self.forward()
        for leaf in self.leaves:
            leaf.requires_grad_()
        if self.leaves:
            one = self.primary(self.result)
            self.seed = library.ones_like(one)
            if one.numel() > 1:  # not what a sum would give, whose gradient some ops see through
                ramp = library.arange(one.numel()).reshape(one.shape) % 7
                self.seed = (ramp.to(self.real_of(one.dtype)) / 7).to(one.dtype)

    def real_of(self, dtype):
        return self.library.float64 if "128" in str(dtype) else self.library.float32

    def primary(self, result):
        return result if isinstance(result, self.library.Tensor) else result[-1]

    def both(self):
        return self.library.autograd.grad(self.primary(self.forward()), self.leaves, self.seed)


def worker(name):
    import gc

    if not bound_to_parent():
        return
    import numpy  # noqa: F401

    library = importlib.import_module(name)
    gc.disable()
    answer, sys.stdout = sys.stdout, sys.stderr
    row = call = None
    clock = time.perf_counter_ns
    for line in sys.stdin:
        command = json.loads(line)
        reply = {}
        try:
            if "threads" in command:
                library.set_num_threads(command["threads"])
                clock = time.thread_time_ns if command["threads"] == 1 else time.perf_counter_ns
            elif "row" in command:
                row = None
                gc.collect()
                row = Row(library, command["row"])
                reply["values"] = summary(tensors_of(row.result, library))
            elif "both" in command:
                reply["values"] = summary(row.both()) if command["both"] else []
                call = row.both if command["both"] else row.forward
            elif "repeats" in command:
                grads = library.enable_grad() if call == row.both else library.no_grad()
                with grads:
                    start = clock()
                    while True:
                        call()
                        if clock() - start > WARM_UP_NS:
                            break
                    start = clock()
                    for _ in range(command["repeats"]):
                        call()
                    reply["ns"] = (clock() - start) / command["repeats"]
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        print(json.dumps(reply), file=answer, flush=True)


def compare(replies):
    """Why two summaries differ, or None."""
    for a, b in zip(*(r["values"] for r in replies)):
        low = a[2] in ("bfloat16", "float16")
        if a[0] != b[0]:
            return f"shapes {a[0]} and {b[0]}"
        if not math.isfinite(a[1]) and not math.isfinite(b[1]):
            continue
        if not abs(a[1] - b[1]) <= (3e-2 if low else 2e-3) * max(abs(a[1]), abs(b[1]), 1e-3):
            return f"root mean squares {a[1]:.6g} and {b[1]:.6g}"
    return None


def time_of(pass_name, workers, rounds):
    replies = [w.ask(both=pass_name == "both") for w in workers]
    for name, reply in zip(("kiln", "torch"), replies):
        if "error" in reply:
            return {"error": f"{name}: {reply['error']}"}
    difference = compare(replies)
    if difference:
        return {"error": difference}
    medians, spread = measure(workers, rounds)
    return {
        "kiln_us": medians[0] / 1000,
        "torch_us": medians[1] / 1000,
        "ratio": medians[1] / medians[0],
        "spread": spread,
    }


def text_of(group, call, sizes, pass_name, row):
    label = f"{group:18} {pass_name:7} "
    if "error" in row:
        return f"{label} {row['error']}  {call}  {sizes}"
    return (
        f"{label} {row['kiln_us']:10.1f} us {row['torch_us']:10.1f} us {row['ratio']:7.2f}"
        f"  {100 * row['spread']:3.0f} %  {call}  {sizes}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--filter", default="", help="only rows whose call and sizes match")
    parser.add_argument("--group", default="", help="only rows whose group matches")
    parser.add_argument("--unseen", action="store_true", help="shapes drawn at random")
    parser.add_argument("--seed", type=int, default=int(datetime.date.today().strftime("%Y%m%d")),
                        help="of --unseen (default: today's date, as 20261231)")
    parser.add_argument("--count", type=int, default=200, help="rows of --unseen")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker)
        return
    if not importlib.util.find_spec("torch"):
        sys.exit("no PyTorch here: script/bootstrap --peers")
    clock = "CPU time" if args.threads == 1 else "wall time"
    print(f"{processor()}; {args.threads} threads, {clock}; medians of {args.rounds} rounds; "
          "the ratio is PyTorch's time over Kiln's")
    print(f"PyTorch: {described() or 'as installed'}")
    table = drawn(args.seed, args.count) if args.unseen else ROWS
    if args.unseen:
        print(f"{args.count} shapes drawn with --seed {args.seed}")
    workers, rows = [], []
    try:
        for name in ("kiln", "torch"):
            workers.append(Worker(name, __file__, environment=environment_of(name)))
            workers[-1].ask(threads=args.threads)
        for entry in table:
            group, operands, call, differentiated = entry
            sizes = " ".join(f"{k}={v}" for k, v in operands.items()).replace("torch.", "")
            if not re.search(args.filter, f"{call} {sizes}") or not re.search(args.group, group):
                continue
            replies = [w.ask(row=entry) for w in workers]
            errors = [f"{n}: {r['error']}" for n, r in zip(("kiln", "torch"), replies) if "error" in r]
            if not errors and "svd(" not in call and "eig" not in call and "qr" not in call:
                errors = [e for e in [compare(replies)] if e]
            for pass_name in ("forward", "both") if differentiated else ("forward",):
                row = {"error": errors[0]} if errors else time_of(pass_name, workers, args.rounds)
                row |= {"group": group, "call": call, "sizes": sizes, "pass": pass_name}
                rows.append(row)
                print(text_of(group, call, sizes, pass_name, row), flush=True)
    finally:
        for w in workers:
            w.end()
    report(rows)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    sys.exit(1 if any("error" in r for r in rows) else 0)


def report(rows):
    """What each group comes to."""
    print(f"\n{'group':18} {'rows':>5} {'median':>7} {'least':>7}  slower by more than 10 %, than 20 %")
    timed = [r for r in rows if "error" not in r]
    for group in [*dict.fromkeys(r["group"] for r in timed), "all"]:
        ratios = sorted(r["ratio"] for r in timed if group in (r["group"], "all"))
        if ratios:
            print(f"{group:18} {len(ratios):5} {statistics.median(ratios):7.2f} {ratios[0]:7.2f}  "
                  f"{sum(r < 0.9 for r in ratios)}, {sum(r < 0.8 for r in ratios)}")
    for row in rows:
        if "error" in row:
            print(f"failed: {row['call']} {row['sizes']}: {row['error']}")


if __name__ == "__main__":
    main()
