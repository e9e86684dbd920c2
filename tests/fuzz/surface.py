"""Calls everything that the Python package offers with arguments of every kind, and reports what
ends the process, hangs, fills the memory, or fails without a word.

    .venv/bin/python tests/fuzz/surface.py --seconds 60
    .venv/bin/python tests/fuzz/surface.py --calls 200000 --jobs 2 --seed 7
    .venv/bin/python tests/fuzz/surface.py --only 'kiln.fft' --calls 5000
    .venv/bin/python tests/fuzz/surface.py --run 'kiln.zeros(2, device="cuda")'

Half of the calls are nearly valid. A call is Python source, made from the seed and its number
alone. Workers are forked, work in a temporary folder, and have limits of time and memory. Exit
status 1: something was found.
"""

import argparse
import math
import os
import random
import re
import shutil
import sys
import tempfile
import time

import kiln
import kiln.accelerator  # noqa: F401  what is imported when it is used first
import kiln.audio  # noqa: F401
import kiln.distributed  # noqa: F401
import kiln.distributions  # noqa: F401
import kiln.library  # noqa: F401
import kiln.metrics  # noqa: F401
import kiln.overrides  # noqa: F401
import kiln.rl  # noqa: F401
import kiln.serialization  # noqa: F401
import kiln.testing  # noqa: F401
import kiln.vision  # noqa: F401
import surface_values as values
from surface_run import Runner, examine, which_work
from surface_targets import case_calls, targets

NAMES = {**values.NAMES, "kiln": kiln, "math": math, "inf": math.inf, "nan": math.nan}


class Call:
    """A call as source: what is called, and its arguments."""

    def __init__(self, function, arguments, keywords, is_property=False):
        self.function, self.arguments, self.keywords = function, arguments, keywords
        self.is_property = is_property

    def source(self):
        if self.is_property:
            if not self.arguments:
                return self.function
            owner, _, name = self.function.rpartition(".")
            return f"setattr({owner}, {name!r}, {self.arguments[0]})"
        keywords = [f"{name}={value}" for name, value in self.keywords.items()]
        return f"{self.function}({', '.join(self.arguments + keywords)})"

    def shorter(self):
        """The same with one argument less, or a plainer one."""
        for name in self.keywords:
            rest = {k: v for k, v in self.keywords.items() if k != name}
            yield Call(self.function, self.arguments, rest, self.is_property)
        if self.arguments:
            yield Call(self.function, self.arguments[:-1], self.keywords, self.is_property)
        for i, argument in enumerate(self.arguments):
            for plain in ("None", "1", "T()"):
                if len(plain) < len(argument):
                    arguments = self.arguments[:i] + [plain] + self.arguments[i + 1 :]
                    yield Call(self.function, arguments, self.keywords, self.is_property)


class Calls:
    """Call number i of a seed."""

    def __init__(self, seed, found, cases):
        self.seed, self.targets, self.cases = seed, found, cases
        labours = [t for t in found if any(p.kind == "labour" for p in t.parameters or [])]
        self.labours = {t.source for t in labours}

    def __getitem__(self, i):
        rng = random.Random(f"{self.seed}/{i}")
        way = rng.random()
        if self.cases and way < 0.35:
            return self.mutated(rng)
        target = rng.choice(self.targets)
        wild = way > 0.8 and target.source not in self.labours
        if wild or target.parameters is None:
            return self.wild(rng, target)
        return self.nearly_valid(rng, target)

    def mutated(self, rng):
        function, arguments, keywords = rng.choice(self.cases)
        if function in self.labours:
            return Call(function, arguments, keywords)
        arguments, keywords = list(arguments), dict(keywords)
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            value = values.hostile(rng) if rng.random() < 0.7 else values.valid(
                rng, rng.choice(["tensor", "integers", "int", "float", "dtype", "text"]),
                values.theme(rng),
            )  # fmt: skip
            places = list(range(len(arguments))) + list(keywords)
            if not places or rng.random() < 0.1:
                arguments.append(value)
                continue
            place = rng.choice(places)
            (arguments if isinstance(place, int) else keywords)[place] = value
        return Call(function, arguments, keywords)

    def nearly_valid(self, rng, target):
        theme = values.theme(rng)
        arguments, keywords = [], {}
        positional = True
        for p in target.parameters:
            if p.optional and not p.variadic and rng.random() < 0.5:
                positional = False
                continue
            if p.variadic:
                for _ in range(rng.choice([0, 1, 1, 2, 3]) if positional else 0):
                    arguments.append(values.valid(rng, p.kind, theme))
                continue
            value = values.valid(rng, p.kind, theme)
            if positional and not p.keyword_only:
                arguments.append(value)
            else:
                keywords[p.name] = value
        if rng.random() < 0.6:
            places = list(range(len(arguments))) + list(keywords)
            if places and target.source not in self.labours:
                place = rng.choice(places)
                (arguments if isinstance(place, int) else keywords)[place] = values.hostile(rng)
        if target.is_property and rng.random() < 0.3:
            arguments = []
        return Call(target.source, arguments, keywords, target.is_property)

    def wild(self, rng, target):
        count = 1 if target.is_property else rng.choice([0, 1, 1, 2, 2, 3, 4, 5])
        arguments = [values.hostile(rng) for _ in range(count)]
        if rng.random() < 0.3 and count:
            arguments[0] = values.tensor(rng, values.theme(rng))
        keywords = {}
        names = [p.name for p in target.parameters or [] if not p.variadic]
        if names and rng.random() < 0.3 and not target.is_property:
            keywords[rng.choice(names)] = values.hostile(rng)
        return Call(target.source, arguments, keywords, target.is_property)


def shortened(call, outcome, limits):
    """The shortest call that ends in the same way; None when the call alone does not."""
    if examine(call.source(), NAMES, limits).kind != outcome.kind:
        return None
    shorter = True
    end = time.monotonic() + 30
    while shorter and time.monotonic() < end:
        shorter = False
        for candidate in call.shorter():
            if examine(candidate.source(), NAMES, limits).kind == outcome.kind:
                call, shorter = candidate, True
                break
    return call


def report(finding, calls, limits, seed):
    i, outcome = finding
    call = calls[i]
    short = shortened(call, outcome, limits)
    print(f"\n{outcome.kind}: {outcome.text.strip()[-600:]}")
    if short is None:
        print(f"  call {i} of seed {seed}, after those before it: --seed {seed} --upto {i}")
        print(f"  {call.source()}")
    else:
        print(f"  call {i} of seed {seed}: {short.source()}")
    sys.stdout.flush()


def distinct(findings, calls):
    """One finding for each function and way to end."""
    out = {}
    for i, outcome in sorted(findings, key=lambda f: f[0]):
        key = (outcome.kind, re.sub(r"\(.*?\)", "", calls[i].function))
        out.setdefault(key, (i, outcome))
    return list(out.values())


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--calls", type=int, help="stop after this many calls (20000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", metavar="REGEX", help="call only what matches")
    parser.add_argument("--upto", type=int, help="run the calls of one worker up to this one")
    parser.add_argument("--run", metavar="SOURCE", help="run one call and say how it ends")
    parser.add_argument("--list", action="store_true", help="print what would be called")
    parser.add_argument("--memory", type=int, default=2560, help="MiB that a worker may take")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds that a call may take")
    return parser.parse_args()


def main():
    args = arguments_of()
    limits = (args.limit, args.memory << 20)
    folder = tempfile.mkdtemp(prefix="kiln-surface-")
    try:
        os.chdir(folder)
        if args.run:
            outcome = examine(args.run, NAMES, limits)
            print(outcome.kind, outcome.text.strip()[-2000:])
            return int(outcome.is_finding())
        return fuzz(args, limits, folder)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def fuzz(args, limits, folder):
    found = targets(lambda sources: which_work(sources, NAMES, limits))
    cases = case_calls()
    if args.only:
        found = [t for t in found if re.search(args.only, t.source)]
        cases = [c for c in cases if re.search(args.only, c[0])]
    if args.list:
        for target in found:
            print(target.source, [f"{p.name}:{p.kind}" for p in target.parameters or []])
        return 0
    print(f"{len(found)} callables, {len(cases)} op cases, seed {args.seed}, {args.jobs} jobs")
    calls = Calls(args.seed, found, cases)
    runner = Runner(calls, NAMES, limits, folder, args.jobs)
    count = args.calls or (10**9 if args.seconds else 20000)
    if args.upto is not None:
        count = args.upto + 1
    start = time.monotonic()
    end = None if args.seconds is None else start + args.seconds
    runner.run(count, end, only_chunk=args.upto)
    for finding in distinct(runner.findings, calls):
        report(finding, calls, limits, args.seed)
    print(
        f"\n{runner.done} calls in {time.monotonic() - start:.0f} s: "
        + ", ".join(f"{n} {kind}" for kind, n in sorted(runner.counts.items()))
        + f"; {len(runner.findings)} findings"
    )
    return 1 if runner.findings else 0


if __name__ == "__main__":
    sys.exit(main())
