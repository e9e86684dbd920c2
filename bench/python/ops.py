"""Every op of the table of op cases, and those that make tensors, on about 1 Mi elements, Kiln
beside PyTorch; or, with --sizes, the most used ops on square matrices of so many elements.
--against names a checkout with another version of Kiln, built there by script/python: that version
takes PyTorch's place.

Usage: script/bench ops [--filter REGEX] [--sizes 4096,65536] [--dtype bfloat16] [--threads N]
                        [--rounds N] [--against CHECKOUT] [--json FILE]

Both libraries run in processes of their own that take turns, round by round, so that they meet the
same machine; while one is measured the other is stopped (SIGSTOP), threads that wait busily
included. In every round the inputs lie somewhere else in memory, and a warm-up goes before what is
timed. A row is the median of the rounds; the ratio is the other library's time over Kiln's. PyTorch
runs as peer.py sets it up.
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from peer import described, environment_of, processor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
ROUND_NS = 8_000_000
WARM_UP_NS = 1_000_000

# Ops that make tensors from nothing, or from small ones (`given`, made once for each library): the
# table has no large inputs for them.
MADE = """
torch.zeros(1 << 20)
torch.ones(1 << 20)
torch.full((1024, 1024), 1.5)
torch.arange(1 << 20)
torch.arange(0, 1 << 20, dtype=torch.float32)
torch.linspace(0, 1, 1 << 20)
torch.logspace(0, 1, 1 << 20)
torch.eye(1024)
torch.tril_indices(1024, 1024)
torch.triu_indices(1024, 1024, 1)
torch.rand(1 << 20)
torch.randn(1 << 20)
torch.randint(0, 100, (1 << 20,))
torch.randperm(1 << 20)
torch.bernoulli(given.float() / 1024)
torch.normal(0.0, 2.0, (1 << 20,))
torch.empty(1 << 20).uniform_(-1, 1)
torch.empty(1 << 20).exponential_()
torch.multinomial(given[0].float() + 1, 1 << 20, replacement=True)
torch.multinomial(given.float() + 1, 8)
F.dropout(given.float(), 0.5)
F.one_hot(given[0], 1024)
torch.cat(torch.meshgrid(given[0], given[0], indexing='ij'))
torch.cartesian_prod(given[0], given[0])
torch.combinations(given[0])
F.ctc_loss(given[:256].float().reshape(256, 32, 32).log_softmax(2), given[:32, 1:25], (256,) * 32, (24,) * 32)
""".strip().splitlines()
GIVEN = "torch.arange(1 << 20).reshape(1024, 1024) % 1024"

# The most used ops, for --sizes: of square matrices of numbers around 1 (a, b), a mask (c) and
# indices of columns or rows (d).
SWEPT = """
torch.add(a, b)
torch.add(a, 1.5)
torch.add(a, a[0])
torch.add(a, a[:, :1])
torch.add(a.t(), b)
torch.mul(a, b)
torch.div(a, b)
torch.neg(a)
torch.abs(a)
torch.pow(a, 2)
torch.sqrt(a)
torch.exp(a)
torch.sigmoid(a)
torch.tanh(a)
torch.relu(a)
F.gelu(a)
F.silu(a)
torch.clamp(a, 0.7, 1.2)
torch.where(c, a, b)
torch.masked_fill(a, c, 0.0)
torch.masked_select(a, c)
torch.gt(a, b)
torch.eq(a, 1.0)
torch.logical_not(c)
torch.any(c)
torch.all(c)
torch.sum(c)
torch.sum(a)
torch.sum(a, 0)
torch.sum(a, 1)
torch.sum(a.t(), 0)
torch.sum(a[:, ::2], 1)
torch.sum(a[:, 1:], 0)
torch.mean(a)
torch.mean(a, 1)
torch.mean(a.t(), 1)
torch.std(a, 1)
torch.var(a)
torch.amax(a, 1)
torch.amax(a.t(), 1)
torch.max(a, 0)
torch.max(a, 1)
torch.argmax(a)
torch.argmax(a, 1)
torch.norm(a)
torch.cumsum(a, 0)
torch.cumsum(a, 1)
torch.sort(a, 1)
torch.topk(a, 8, 1)
F.softmax(a, 1)
F.softmax(a, 0)
F.log_softmax(a, 1)
F.layer_norm(a, (a.shape[1],))
F.layer_norm(a, (a.shape[1],), a[0], b[0])
F.rms_norm(a, (a.shape[1],))
F.mse_loss(a, b)
F.cross_entropy(a, d[0])
F.dropout(a, 0.1)
F.embedding(d[0], a)
torch.cat((a, b), 0)
torch.cat((a, b), 1)
torch.stack((a, b), 0)
torch.stack((a, b), 2)
torch.clone(a)
a.t().contiguous()
a[:, ::2].contiguous()
a[:, 1:].contiguous()
torch.flip(a, (1,))
torch.roll(a, 1, 1)
torch.tril(a)
torch.gather(a, 1, d)
torch.gather(a, 0, d)
torch.index_select(a, 0, d[0])
torch.index_select(a, 1, d[0])
torch.scatter_add(a, 1, d, b)
a[d[0]]
a.to(torch.float64)
a.to(torch.float32)
a.to(torch.bfloat16)
a.to(torch.int64)
d.to(torch.float32)
torch.zeros_like(a)
torch.full_like(a, 1.5)
a.add_(b)
a.mul_(1.0)
a.relu_()
a.clamp_(0.7, 1.2)
a.copy_(b)
a.fill_(1.0)
a.zero_()
a[:, ::2].add_(1.0)
""".strip().splitlines()


def bound_to_parent():
    """Lets the kernel end this process with its parent, even when stopped. False if that ended."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    return os.getppid() == int(os.environ["KILN_BENCH_PARENT"])


def worker(name):
    """Serves one library: reads commands as JSON lines, answers with JSON lines."""
    import gc

    if not bound_to_parent():
        return

    import kiln
    from op_cases import as_tensor, evaluate

    library = __import__(name)
    gc.disable()
    case = inputs = None
    given = eval(GIVEN, {"torch": library})
    kept = []
    answer = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        command = json.loads(line)
        reply = {}
        try:
            if "threads" in command:
                library.set_num_threads(command["threads"])
            elif "case" in command:
                kept.clear()
                case = command["case"]
                inputs = []
                if command["file"]:
                    stored = kiln.load(command["file"])
                    inputs = [as_tensor(stored[str(i)], library) for i in range(len(stored))]
                    with library.no_grad():
                        evaluate(case, inputs, library)
                else:
                    if "size" in case:
                        inputs = matrices(library, case["size"], case["dtype"])
                    bound(case, inputs, library, given)()
            elif "repeats" in command:
                with library.no_grad():
                    inputs = elsewhere(inputs, library, kept, command["round"])
                call = bound(case, inputs, library, given)
                repeats = command["repeats"]
                with library.no_grad():
                    start = time.perf_counter_ns()
                    while True:
                        call()
                        if time.perf_counter_ns() - start > WARM_UP_NS:
                            break
                    start = time.perf_counter_ns()
                    for _ in range(repeats):
                        call()
                    reply["ns"] = (time.perf_counter_ns() - start) / repeats
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(reply), file=answer, flush=True)


def bound(case, inputs, library, given):
    """The call alone, without the surroundings that evaluate() needs."""
    names = {"torch": library, "F": library.nn.functional, "given": given}
    names |= {"math": math, "inf": float("inf"), "nan": float("nan")}
    names |= dict(zip("abcdefghij", inputs))
    call = case["python"] if library.__name__ == "kiln" else case.get("peer") or case["python"]
    return eval("lambda: " + call, names)


def matrices(library, size, dtype):
    """The inputs of SWEPT."""
    n = math.isqrt(size)
    library.manual_seed(0)
    a, b = ((library.rand(n, n) + 0.5).to(getattr(library, dtype)) for _ in range(2))
    return [a, b, library.rand(n, n) < 0.5, library.randint(0, n, (n, n))]


def elsewhere(inputs, library, kept, number):
    """Copies of the inputs at other addresses than those of the rounds before."""
    # Blocks of uneven sizes that stay shift what is allocated next, by lines and by pages.
    del kept[: -(number % 4) or None]
    kept.append(library.empty(16 * (7 + 13 * number % 64)))
    kept.append(library.empty(1024 * (33 + 97 * number % 256)))
    return [x.clone() for x in inputs]


class Worker:
    """A process that serves one library. It is stopped except while it answers."""

    def __init__(self, library, program=__file__, python=sys.executable, environment=None):
        self.process = subprocess.Popen(
            [python, program, "--worker", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A group of its own, so that Ctrl-C reaches this process alone, which ends the worker.
            start_new_session=True,
            env={**os.environ, **(environment or {}), "KILN_BENCH_PARENT": str(os.getpid())},
        )
        self.ask()

    def ask(self, **command):
        pid = self.process.pid
        try:
            os.kill(pid, signal.SIGCONT)
            print(json.dumps(command), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
            os.kill(pid, signal.SIGSTOP)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        except OSError:
            line = ""
        return json.loads(line) if line else {"error": "the process ended"}

    def time(self, repeats, number=0):
        reply = self.ask(repeats=repeats, round=number)
        if "error" in reply:
            sys.exit(f"bench: {reply['error']}")
        return reply["ns"]

    def end(self):
        self.process.kill()
        self.process.wait()


def measure(workers, rounds, round_ns=ROUND_NS, seconds=0):
    """Medians in ns, and the largest spread (half the middle range over the median).

    There are more rounds, up to five times as many, while fewer than so many seconds are over.
    """
    start = time.monotonic()
    repeats = []
    for w in workers:
        once = min(w.time(1), w.time(1))
        repeats.append(max(1, min(1000, int(round_ns / max(once, 1)))))
    times = [[] for _ in workers]
    done = 0
    while done < rounds or (done < 5 * rounds and time.monotonic() < start + seconds):
        done += 1
        for w, n, list_ in zip(workers, repeats, times):
            list_.append(w.time(n, done))
    medians = [statistics.median(t) for t in times]
    spread = 0.0
    for t, m in zip(times, medians):
        if rounds < 2:
            break
        low, _, high = statistics.quantiles(t, n=4)
        spread = max(spread, (high - low) / 2 / m)
    return medians, spread


def run(args, program, folder):
    subprocess.run([program, "dump", folder], check=True)
    cases = json.loads((pathlib.Path(folder) / "cases.json").read_text())
    if args.sizes:
        made = {"dtypes": [], "dtype": args.dtype}
        cases = [made | {"name": f"{name_of(c)} {size}", "python": c, "size": size}
                 for size in args.sizes for c in SWEPT]
    else:
        cases = [c for c in cases if c["big"]]
        cases += [{"name": name_of(c), "python": c, "dtypes": []} for c in MADE]
    cases = [c for c in cases if re.search(args.filter, c["python"])]
    libraries = [("kiln", None)]
    if args.against:
        libraries.append(("kiln", {"PYTHONPATH": package_of(args.against)}))
    elif importlib.util.find_spec("torch"):
        libraries.append(("torch", environment_of("torch")))
    else:
        print("no PyTorch here (script/bootstrap --peers): Kiln runs alone", file=sys.stderr)
    workers = []
    try:
        for name, environment in libraries:
            workers.append(Worker(name, environment=environment))
            workers[-1].ask(threads=args.threads)
        return rows_of(args, program, folder, cases, workers)
    finally:
        for w in workers:
            w.end()


def package_of(checkout):
    """Where another checkout's build has its Python package."""
    package = pathlib.Path(checkout).resolve() / "build" / "release" / "python"
    if not (package / "kiln").is_dir():
        sys.exit(f"bench ops: {checkout} has no Python package; run script/python there first")
    return str(package)


def name_of(call):
    """The name of the op of a call, as the table of op cases has it."""
    if name := re.match(r"(torch|F)\.(\w+)", call):
        return name[2] if name[1] == "torch" else f"nn.functional.{name[2]}"
    name = re.search(r"\.(\w+)\([^.]*$", call) or re.search(r"\.(\w+)\(", call)
    return f"Tensor.{name[1]}" if name else "Tensor.index"


def rows_of(args, program, folder, cases, workers):
    rows = []
    file = os.path.join(folder, "inputs.safetensors")
    for case in cases:
        has_inputs = "number" in case
        if has_inputs:
            subprocess.run([program, "inputs", str(case["number"]), file], check=True)
        errors = [
            w.ask(case=case, file=file if has_inputs else None).get("error") for w in workers
        ]
        row = {"op": case["name"], "call": case["python"]}
        if case["dtypes"] == ["float64"]:
            row["op"] += " (float64)"
        if errors[0]:
            row["error"] = f"kiln: {errors[0]}"
        else:
            usable = [w for w, e in zip(workers, errors) if not e]
            medians, row["spread"] = measure(usable, args.rounds)
            row["kiln_us"] = medians[0] / 1000
            if len(medians) > 1:
                row["old_us" if args.against else "torch_us"] = medians[1] / 1000
                row["ratio"] = medians[1] / medians[0]
        rows.append(row)
        print(text_of(row), flush=True)
    return rows


def text_of(row):
    if "error" in row:
        return f"{row['op']:34}  {row['error']}"
    text = f"{row['op']:34} {row['kiln_us']:10.1f} us"
    if "ratio" in row:
        text += f" {row['kiln_us'] * row['ratio']:10.1f} us {row['ratio']:7.2f}"
    else:
        text += " " * 21
    return text + f"  {100 * row['spread']:3.0f} %  {row['call']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--filter", default="", help="only ops whose call matches")
    parser.add_argument("--sizes", type=lambda s: [int(n) for n in s.split(",")],
                        help="the most used ops, on so many elements: 4096,65536,16777216")
    parser.add_argument("--dtype", default="float32", help="of what --sizes runs")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--against", metavar="CHECKOUT", help="another version of Kiln in PyTorch's place")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker)
        return
    from op_cases import PROGRAM

    other = "old" if args.against else "PyTorch"
    whose = "the old version's" if args.against else "PyTorch's"
    print(f"{processor()}; {args.threads} threads; medians of {args.rounds} rounds; the ratio is {whose} time over Kiln's")
    if not args.against:
        print(f"PyTorch: {described() or 'as installed'}")
    print(f"{'op':34} {'Kiln':>13} {other:>13} {'ratio':>7}  spread  call")
    with tempfile.TemporaryDirectory() as folder:
        rows = run(args, PROGRAM, folder)
    ratios = sorted((r["ratio"], r["op"]) for r in rows if "ratio" in r)
    if ratios:
        percent = 3 if args.against else 10
        slower = [f"{op} {ratio:.2f}" for ratio, op in ratios if ratio < 1 - percent / 100]
        print(f"\n{len(ratios)} rows beside {'the old version' if args.against else other}: median ratio "
              f"{statistics.median(r for r, _ in ratios):.2f}; "
              f"{len(slower)} more than {percent} % slower{': ' + ', '.join(slower) if slower else ''}")
    failed = [r["op"] for r in rows if "error" in r]
    if failed:
        print(f"{len(failed)} rows failed: {', '.join(failed)}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
