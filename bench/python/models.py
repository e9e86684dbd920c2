"""Whole models (model_rows.py) in Kiln beside the strongest peers: PyTorch with torchvision's and
transformers' models and, for inference, ONNX Runtime and OpenVINO.

Usage: script/bench models [--unseen] [--filter REGEX] [--threads N] [--rounds N] [--json FILE]

Each library has a process of its own; they take turns and are stopped meanwhile. All have the same
weights and inputs; an answer that differs is an error. With one thread CPU time is counted, which
other programs hardly disturb; else wall time. A row is the median of the rounds, each of calls for
40 ms, or one, after one that is not counted; of short rows there are up to five times as many. The ratio is the
best peer's time over Kiln's: above 1 Kiln is faster. For inference there is also what kiln.compile
makes of the model (freeze), and the ratio of that.

For inference Kiln and PyTorch have batch normalizations folded into convolutions, as the exporters
do. PyTorch runs in channels last, with fused optimizers, and as peer.py sets it up.
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

from model_rows import ROWS, UNSEEN
from ops import Worker, measure
from peer import described, environment_of, processor

ROUND_NS = 40_000_000
SECONDS = 6  # other guests of a machine slow a core down for a second or so

SIDES = pathlib.Path(__file__).with_name("model_sides.py")
OWN = ("kiln", "compiled")
PEERS = ("torch", "onnxruntime", "openvino")


def started(name, args):
    environment = {
        "KILN_BENCH_THREADS": str(args.threads),
        "OMP_NUM_THREADS": str(args.threads),
        "MKL_NUM_THREADS": str(args.threads),
    }
    environment |= environment_of("kiln" if name in OWN else name)
    python = sys.executable if name in OWN else args.peers
    return Worker(name, program=str(SIDES), python=python, environment=environment)


def rows_of(args, rows, folder):
    found = []
    for row in rows:
        # New processes for each row: what an earlier one left in memory would be counted too.
        workers, times = {}, {}
        entry = {"row": row.name, "asked": row.asked}
        try:
            for name in (*OWN, *PEERS):
                worker = started(name, args)
                reply = worker.ask(make=dataclasses.asdict(row), folder=folder)
                if reply.get("error"):
                    entry.setdefault("errors", {})[name] = reply["error"]
                if reply.get("error") or reply.get("none"):
                    worker.end()
                    if name == "kiln":
                        break
                else:
                    workers[name] = worker
            if "kiln" in workers:
                medians, entry["spread"] = measure(
                    list(workers.values()), args.rounds, ROUND_NS, SECONDS
                )
                times = dict(zip(workers, medians))
        finally:
            for worker in workers.values():
                worker.end()
        entry["ms"] = {name: ns / 1e6 for name, ns in times.items()}
        others = {name: ms for name, ms in entry["ms"].items() if name not in OWN}
        if others:
            entry["best"] = min(others, key=others.get)
            for name, ratio in zip(OWN, ("ratio", "ratio_compiled")):
                if name in entry["ms"]:
                    entry[ratio] = others[entry["best"]] / entry["ms"][name]
        found.append(entry)
        print(text_of(entry), flush=True)
    return found


def text_of(entry):
    text = f"{entry['row']:38}"
    for name in (*OWN, *PEERS):
        text += f"{entry['ms'][name]:11.4g}" if name in entry["ms"] else f"{'-':>11}"
    if "ratio" in entry:
        asked = f"{entry['asked']:6.2f}" if entry["asked"] else f"{'':6}"
        compiled = f"{entry['ratio_compiled']:9.2f}" if "ratio_compiled" in entry else f"{'':9}"
        text += f"{entry['ratio']:8.2f}{asked}{compiled}  {100 * entry['spread']:3.0f} %"
    for name, error in entry.get("errors", {}).items():
        text += f"\n    {name}: {error}"
    return text


def main():
    parser = argparse.ArgumentParser(
        prog="script/bench models",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--unseen", action="store_true",
                        help="35 models that no work on speed has looked at (zoo_*.py)")
    parser.add_argument("--filter", default="", help="only rows whose name matches")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--peers", default=sys.executable, help=argparse.SUPPRESS)
    args = parser.parse_args()
    rows = [row for row in (UNSEEN if args.unseen else ROWS) if re.search(args.filter, row.name)]
    with tempfile.TemporaryDirectory() as folder:
        print(f"{processor()}; {args.threads} threads; medians of {args.rounds} rounds or more")
        print(f"PyTorch: channels last, fused optimizers{described(', ')}")
        heads = "".join(f"{name:>11}" for name in ("Kiln ms", "compiled", *PEERS))
        print(f"{'row':38}{heads}{'ratio':>8}{'asked':>6}{'compiled':>9}  spread")
        found = rows_of(args, rows, folder)
    ratios = [entry["ratio"] for entry in found if "ratio" in entry]
    if ratios:
        short = [e["row"] for e in found if e.get("asked") and e.get("ratio", 0) < e["asked"]]
        print(f"\n{len(ratios)} rows: geometric mean {statistics.geometric_mean(ratios):.2f}; "
              f"{len(short)} below what is asked{': ' + ', '.join(short) if short else ''}")
    compiled = [entry["ratio_compiled"] for entry in found if "ratio_compiled" in entry]
    if compiled:
        print(f"{len(compiled)} of them compiled: geometric mean "
              f"{statistics.geometric_mean(compiled):.2f}, least {min(compiled):.2f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1))
    sys.exit(1 if any("kiln" in entry.get("errors", {}) for entry in found) else 0)


if __name__ == "__main__":
    main()
