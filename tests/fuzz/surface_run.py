"""Runs calls in forked processes, and sees how each ends."""

import collections
import dataclasses
import faulthandler
import gc
import json
import math
import mmap
import os
import random
import resource
import signal
import struct
import sys
import time
import warnings

import kiln

CHUNK = 250  # calls of one process: what one leaves behind, the next processes do not see
FILLED = 1 << 30  # bytes that a call may make resident which then fails
WORDLESS = {"std::bad_cast", "std::bad_alloc", "std::exception", "std::length_error", ""}
# A process that waits uses no processor. On a machine with other work a call takes longer by the
# clock than by the processor.
PATIENCE = 6


@dataclasses.dataclass
class Outcome:
    kind: str  # value, error, or what is a finding
    text: str = ""

    def is_finding(self):
        return self.kind not in ("value", "error")


def outcome_of(source, names):
    """How a call ends that ends at all."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        eval(source, dict(names))
        outcome = Outcome("value")
    except SystemError as error:
        outcome = Outcome("SystemError", str(error))
    except Exception as error:
        # Python gives a MemoryError of its own no words, nor does an assertion of the user's.
        of_kiln = not isinstance(error, (MemoryError, AssertionError, StopIteration, KeyError))
        try:
            text = str(error)
        except Exception:
            text = "?"
        wordless = text.strip() in WORDLESS and (of_kiln or text.startswith("std::"))
        raised = type(error).__module__.startswith("kiln") or text.startswith("std::")
        outcome = Outcome("wordless error" if wordless and raised else "error",
                          f"{type(error).__name__}: {text}")  # fmt: skip
    except BaseException as error:
        outcome = Outcome("error", f"{type(error).__name__}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > FILLED and outcome.kind != "value":  # a value of this size was asked for
        return Outcome("memory", f"the call made {grown >> 20} MiB resident, then: {outcome.text}")
    return outcome


def prepare(limits, errors):
    """A forked process becomes a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(errors, 2)
    sys.stdout, sys.stderr = open(os.devnull, "w"), open(os.devnull, "w")
    faulthandler.enable(file=errors)
    warnings.simplefilter("ignore")
    in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + limits[1],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    gc.freeze()


def processor_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def examine(source, names, limits):
    """How one call ends, in a process of its own."""
    read, write = os.pipe()
    error_read, error_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            prepare(limits, error_write)
            outcome = outcome_of(source, names)
            gc.collect()
            os.write(write, json.dumps([outcome.kind, outcome.text[-3000:]]).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.close(error_write)
    start = time.monotonic()
    status = None
    while status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        elif is_late(pid, time.monotonic() - start, 0.0, limits[0]):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            status = "late"
        else:
            time.sleep(0.002)
    answer = os.read(read, 1 << 16) if status != "late" else b""
    errors = b"" if status == "late" else os.read(error_read, 1 << 14)
    os.close(read)
    os.close(error_read)
    if status == "late":
        return Outcome("timeout", f"more than {limits[0]:g} s")
    if answer:
        return Outcome(*json.loads(answer))
    return ended(status, errors.decode(errors="replace"))


def which_work(sources, names, limits):
    """Whether each call gives a value. One process makes them all, and another goes on after one
    that ends it."""
    works = []
    while len(works) < len(sources):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                prepare(limits, os.open(os.devnull, os.O_WRONLY))
                for source in sources[len(works) :]:
                    signal.alarm(math.ceil(limits[0]))
                    outcome = outcome_of(source, names)
                    os.write(write, b"1" if outcome.kind == "value" else b"0")
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as answers:
            works += [answer == ord("1") for answer in answers.read()]
        if os.waitpid(pid, 0)[1] != 0:
            works.append(False)
    return works


def ended(status, errors):
    if os.WIFSIGNALED(status):
        return Outcome(signal.Signals(os.WTERMSIG(status)).name, errors[-1500:])
    return Outcome("exit", f"status {os.waitstatus_to_exitcode(status)} {errors[-1500:]}")


def is_late(pid, waited, used_before, limit):
    if waited < limit:
        return False
    return waited > PATIENCE * limit or processor_seconds(pid) - used_before > limit


class Worker:
    """A process that runs the calls of a chunk, from `first` on."""

    STATE = struct.Struct("qdd?")  # the call, when it began, processor seconds then, finished

    def __init__(self, runner, first, stop):
        self.first, self.stop = first, stop
        self.memory = mmap.mmap(-1, self.STATE.size)
        self.results = os.path.join(runner.folder, f"results-{first}")
        self.errors_path = os.path.join(runner.folder, f"errors-{first}")
        errors = os.open(self.errors_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.note(first)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                prepare(runner.limits, errors)
                self.work(runner)
            finally:
                os._exit(0)
        os.close(errors)

    def note(self, call, finished=False):
        used = time.process_time()
        self.memory[:] = self.STATE.pack(call, time.monotonic(), used, finished)

    def state(self):
        return self.STATE.unpack(self.memory[:])

    def work(self, runner):
        random.seed(0)
        kiln.manual_seed(0)
        counts = collections.Counter()
        findings = []
        for i in range(self.first, self.stop):
            source = runner.calls[i].source()
            self.note(i)
            outcome = outcome_of(source, runner.names)
            counts[outcome.kind] += 1
            if outcome.is_finding():
                findings.append([i, outcome.kind, outcome.text[-3000:]])
            kiln.set_default_dtype(kiln.float32)
            if outcome.kind == "memory":
                self.stop = i + 1  # a fresh process begins after it
                break
        gc.collect()
        with open(self.results, "w") as file:
            json.dump([self.stop, counts, findings], file)
        self.note(self.stop, True)


class Runner:
    def __init__(self, calls, names, limits, folder, jobs):
        self.calls, self.names, self.limits = calls, names, limits
        self.folder, self.jobs = folder, jobs
        self.findings, self.counts, self.done = [], collections.Counter(), 0

    def run(self, count, end, only_chunk=None):
        """Runs calls 0 to count - 1, or until the time `end`; or the one chunk of a call."""
        chunks = iter(range(0, count, CHUNK))
        if only_chunk is not None:
            chunks = iter([only_chunk // CHUNK * CHUNK])
        workers, rest = [], []
        while True:
            late = end is not None and time.monotonic() > end
            while len(workers) < self.jobs and not late:
                span = rest.pop() if rest else None
                if span is None:
                    first = next(chunks, None)
                    if first is None:
                        break
                    span = (first, min(first + CHUNK, count))
                workers.append(Worker(self, *span))
            if not workers:
                return
            for worker in list(workers):
                again = self.look_at(worker)
                if again is None:
                    continue
                workers.remove(worker)
                if again[0] < again[1]:
                    rest.append(again)
            time.sleep(0.005)

    def look_at(self, worker):
        """None while it works; else the calls of its chunk that it has not made."""
        call, since, used, finished = worker.state()
        pid, status = os.waitpid(worker.pid, os.WNOHANG)
        if pid == 0:
            waited = time.monotonic() - since
            if not is_late(worker.pid, waited, used, self.limits[0]):
                return None
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)
            outcome = Outcome("timeout", f"more than {self.limits[0]:g} s")
        elif finished:
            with open(worker.results) as file:
                stop, counts, findings = json.load(file)
            self.counts.update(counts)
            self.done += sum(counts.values())
            self.findings += [(i, Outcome(kind, text)) for i, kind, text in findings]
            return stop, worker.stop
        else:
            call = worker.state()[0]
            with open(worker.errors_path, errors="replace") as file:
                outcome = ended(status, file.read())
        self.findings.append((call, outcome))
        self.counts[outcome.kind] += 1
        self.done += call - worker.first + 1
        return call + 1, worker.stop
