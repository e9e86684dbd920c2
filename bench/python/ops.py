"""Every op of the table of op cases on about 1 Mi elements, Kiln beside PyTorch.

Usage: script/bench ops [--filter REGEX] [--threads N] [--rounds N] [--json FILE]

Both libraries run in processes of their own that take turns, round by round, so that they meet the
same machine. A row is the median of the rounds; the ratio is PyTorch's time over Kiln's.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
ROUND_NS = 8_000_000


def worker(name):
    """Serves one library: reads commands as JSON lines, answers with JSON lines."""
    import gc

    import kiln
    from op_cases import as_tensor, evaluate

    library = __import__(name)
    gc.disable()
    case = inputs = None
    answer = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        command = json.loads(line)
        reply = {}
        try:
            if "threads" in command:
                library.set_num_threads(command["threads"])
            elif "case" in command:
                case = command["case"]
                stored = kiln.load(command["file"])
                inputs = [as_tensor(stored[str(i)], library) for i in range(len(stored))]
                with library.no_grad():
                    evaluate(case, inputs, library)
            else:
                # What the call costs without the surroundings that evaluate() needs.
                names = {"torch": library, "F": library.nn.functional}
                names |= {"math": __import__("math"), "inf": float("inf"), "nan": float("nan")}
                names |= dict(zip("abcdefghij", inputs))
                call = eval("lambda: " + case["python"], names)
                repeats = command["repeats"]
                with library.no_grad():
                    start = time.perf_counter_ns()
                    for _ in range(repeats):
                        call()
                    reply["ns"] = (time.perf_counter_ns() - start) / repeats
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(reply), file=answer, flush=True)


class Worker:
    def __init__(self, library):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Threads that wait must not take the other process's time.
            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"},
        )

    def ask(self, **command):
        print(json.dumps(command), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def time(self, repeats):
        return self.ask(repeats=repeats)["ns"]


def measure(workers, rounds):
    """Medians in ns, and the largest spread (half the middle range over the median)."""
    repeats = []
    for w in workers:
        once = min(w.time(1), w.time(1))
        repeats.append(max(1, min(1000, int(ROUND_NS / max(once, 1)))))
    times = [[] for _ in workers]
    for _ in range(rounds):
        for w, n, list_ in zip(workers, repeats, times):
            list_.append(w.time(n))
    medians = [statistics.median(t) for t in times]
    spread = 0.0
    for t, m in zip(times, medians):
        low, _, high = statistics.quantiles(t, n=4)
        spread = max(spread, (high - low) / 2 / m)
    return medians, spread


def run(args, program, folder):
    subprocess.run([program, "dump", folder], check=True)
    cases = json.loads((pathlib.Path(folder) / "cases.json").read_text())
    cases = [c for c in cases if c["big"] and re.search(args.filter, c["name"])]
    libraries = ["kiln"]
    if importlib.util.find_spec("torch"):
        libraries.append("torch")
    else:
        print("no PyTorch here (script/bootstrap --peers): Kiln runs alone", file=sys.stderr)
    workers = [Worker(name) for name in libraries]
    for w in workers:
        w.ask(threads=args.threads)
    rows = []
    file = os.path.join(folder, "inputs.safetensors")
    for case in cases:
        subprocess.run([program, "inputs", str(case["number"]), file], check=True)
        errors = [w.ask(case=case, file=file).get("error") for w in workers]
        row = {"op": case["name"], "call": case["python"]}
        if errors[0]:
            row["error"] = f"kiln: {errors[0]}"
        else:
            usable = [w for w, e in zip(workers, errors) if not e]
            medians, row["spread"] = measure(usable, args.rounds)
            row["kiln_us"] = medians[0] / 1000
            if len(medians) > 1:
                row["torch_us"] = medians[1] / 1000
                row["ratio"] = medians[1] / medians[0]
        rows.append(row)
        print(text_of(row), flush=True)
    return rows


def text_of(row):
    if "error" in row:
        return f"{row['op']:34}  {row['error']}"
    text = f"{row['op']:34} {row['kiln_us']:10.1f} us"
    if "ratio" in row:
        text += f" {row['torch_us']:10.1f} us {row['ratio']:7.2f}"
    else:
        text += " " * 21
    return text + f"  {100 * row['spread']:3.0f} %  {row['call']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--filter", default="", help="only ops whose name matches")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker)
        return
    from op_cases import PROGRAM

    print(f"{args.threads} threads; medians of {args.rounds} rounds; the ratio is PyTorch's time over Kiln's")
    print(f"{'op':34} {'Kiln':>13} {'PyTorch':>13} {'ratio':>7}  spread  call")
    with tempfile.TemporaryDirectory() as folder:
        rows = run(args, PROGRAM, folder)
    ratios = sorted((r["ratio"], r["op"]) for r in rows if "ratio" in r)
    if ratios:
        slower = [f"{op} {ratio:.2f}" for ratio, op in ratios if ratio < 0.9]
        print(f"\n{len(ratios)} rows beside PyTorch: median ratio "
              f"{statistics.median(r for r, _ in ratios):.2f}; "
              f"{len(slower)} more than 10 % slower{': ' + ', '.join(slower) if slower else ''}")
    failed = [r["op"] for r in rows if "error" in r]
    if failed:
        print(f"{len(failed)} rows failed: {', '.join(failed)}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
