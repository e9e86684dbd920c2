"""Compiled Kiln beside eager Kiln, PyTorch eager and compiled, JAX's jit, ONNX Runtime and OpenVINO:
training steps, inference, steps with second derivatives, a chain of elementwise ops, the time of a
first call, and memory (graph_rows.py).

Usage: script/bench --compiled [--filter REGEX] [--group NAME] [--threads N] [--rounds N]
                               [--sides kiln,eager,torch] [--json FILE]

Each library has a process of its own; they take turns and are stopped meanwhile. All have the same
weights and inputs; an answer that differs is an error. With one thread CPU time is counted, which
other programs hardly disturb; else wall time. A row is the median of the rounds, each of calls for
40 ms, or one, after one that is not counted. The ratio is the
best peer's time over that of compiled Kiln: above 1 Kiln is faster. Of a first call the peer is
torch.compile; of memory the ratio is what the compiled step takes over what the eager one does.

Kiln runs steps through kiln.compile and inference as a captured graph of frozen weights; a decoding
step has a cache that grows, and is eager. PyTorch runs in channels last, with fused optimizers, with
norms folded for inference, and as peer.py sets it up; torch.compile has the losses, since it takes
neither a backward pass nor second derivatives. JAX has the rows whose programs are in graph_jax.py.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

from graph_rows import GROUPS, MEANS, MOST_MEMORY
from models import ROUND_NS, SECONDS
from ops import Worker, measure
from peer import described, environment_of, processor

PROGRAM = pathlib.Path(__file__).with_name("graph_sides.py")
SIDES = ("eager", "kiln", "torch", "compile", "jax", "onnxruntime", "openvino")
PEERS = SIDES[2:]
MEMORY = ("memory", "lean")
TITLES = ("eager", "compiled", "torch", "t.compile", "jax", "onnxrt", "openvino")


def started(name, args):
    threads = str(args.threads)
    environment = {
        "KILN_BENCH_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=" + ("false" if args.threads == 1 else "true"),
    }
    environment |= environment_of("torch" if name == "compile" else name)
    python = sys.executable if name in ("kiln", "eager") else args.peers
    return Worker(name, program=str(PROGRAM), python=python, environment=environment)


def measured(args, row, folder):
    """{side: time or value}, the spread, and {side: error}."""
    workers, values, errors = {}, {}, {}
    spread = 0.0
    try:
        for name in SIDES:
            if name not in args.sides and name != "eager":  # the one that makes weights
                continue
            worker = started(name, args)
            reply = worker.ask(make=dataclasses.asdict(row), folder=folder)
            if reply.get("error"):
                errors[name] = reply["error"]
            if "value" in reply and not reply.get("error"):
                values[name] = reply["value"]
            if reply.get("error") or reply.get("none") or "value" in reply:
                worker.end()
            else:
                workers[name] = worker
        if workers:
            medians, spread = measure(
                list(workers.values()), args.rounds, ROUND_NS, SECONDS
            )
            values |= {name: ns / 1e6 for name, ns in zip(workers, medians, strict=True)}
    finally:
        for worker in workers.values():
            worker.end()
    return values, spread, errors


def ratio_of(row, values):
    if "kiln" not in values:
        return None
    if row.kind in MEMORY:
        return values["kiln"] / values["eager"] if "eager" in values else None
    peers = ("compile",) if row.kind == "first" else PEERS
    found = [values[name] for name in peers if name in values]
    return min(found) / values["kiln"] if found else None


def text_of(row, entry):
    unit = " MB" if row.kind in MEMORY else " s" if row.kind == "first" else ""
    by = 1e6 if row.kind in MEMORY else 1
    text = f"{row.name + unit:36}"
    for name in SIDES:
        value = entry["values"].get(name)
        text += f"{value / by:11.3f}" if value is not None else f"{'-':>11}"
    if entry["ratio"] is not None:
        asked = f"{entry['asked']:6.2f}" if entry["asked"] else ""
        text += f"{entry['ratio']:8.2f}{asked:>7}"
        text += f"  {100 * entry['spread']:3.0f} %" if entry["spread"] else ""
    for name, error in entry["errors"].items():
        text += f"\n    {name}: {error}"
    return text


def is_short(entry):
    if entry["kind"] in MEMORY:
        return entry["ratio"] is None or entry["ratio"] > MOST_MEMORY
    return entry["asked"] is not None and (entry["ratio"] or 0) < entry["asked"]


def run(args):
    found = []
    for group, rows in GROUPS.items():
        rows = [row for row in rows if re.search(args.filter, row.name)]
        if args.group not in group or not rows:
            continue
        print(f"{group}", flush=True)
        for row in rows:
            # For each row, since a file of weights may be large.
            with tempfile.TemporaryDirectory() as folder:
                values, spread, errors = measured(args, row, folder)
            entry = {"group": group, "row": row.name, "kind": row.kind, "values": values}
            entry |= {"ratio": ratio_of(row, values), "asked": row.asked}
            entry |= {"spread": spread, "errors": errors}
            found.append(entry)
            print(text_of(row, entry), flush=True)
        ratios = [e["ratio"] for e in found if e["group"] == group and e["ratio"]]
        if len(ratios) > 1 and group != "memory":
            asked = f" ({MEANS[group]} asked)" if group in MEANS else ""
            print(f"    geometric mean {statistics.geometric_mean(ratios):.2f}{asked}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(
        prog="script/bench --compiled",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--filter", default="", help="only rows whose name matches")
    parser.add_argument("--group", default="", help="only groups whose name has this in it")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sides", default=",".join(SIDES), help="of " + ", ".join(SIDES))
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--peers", default=sys.executable, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.sides, args.rounds = args.sides.split(","), max(2, args.rounds)
    print(f"{processor()}; {args.threads} threads; medians of {args.rounds} rounds or more, in ms")
    print(f"PyTorch: channels last, fused optimizers{described(', ')}")
    print(f"{'row':36}{''.join(f'{t:>11}' for t in TITLES)}{'ratio':>8}{'asked':>7}  spread")
    found = run(args)
    short = [entry["row"] for entry in found if is_short(entry)]
    print(f"\n{len(found)} rows; {len(short)} short of what is asked: {', '.join(short) or '-'}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1))
    own = [e for e in found if {"kiln", "eager"} & set(e["errors"])]
    sys.exit(1 if own else 0)


if __name__ == "__main__":
    main()
