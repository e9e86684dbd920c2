"""What goes wrong in groups of three processes; ARGUMENTS: how."""

import os
import signal
import sys
import time
from datetime import timedelta

from report import ARGUMENTS, RANK, SIZE, dist, finish, lib, normal, note, refused, write

(how,) = ARGUMENTS


def mistakes():
    """Operations that do not fit, each in a group of its own."""
    x = lib.ones(3)
    groups = [dist.new_group(timeout=timedelta(seconds=20)) for _ in range(4)]
    calls = [
        (lambda g: dist.all_reduce(x, group=g), lambda g: dist.broadcast(x, 0, group=g)),
        (lambda g: dist.all_reduce(x, group=g), lambda g: dist.all_reduce(lib.ones(4), group=g)),
        (lambda g: dist.all_reduce(x, group=g), lambda g: dist.all_reduce(x.int(), group=g)),
        (
            lambda g: dist.all_reduce(x, group=g),
            lambda g: dist.all_reduce(x, dist.ReduceOp.MAX, group=g),
        ),
    ]
    for i, (group, pair) in enumerate(zip(groups, calls, strict=True)):
        try:
            pair[0 if RANK == 0 else 1](group)
        except dist.DistBackendError as error:
            note(f"mistake {i}", str(error))
        refused(dist.DistBackendError, "", lambda: dist.barrier(group))  # nor anything else
    dist.barrier()  # the group of all is whole


def late():
    """The last process comes when the others have given up."""
    group = dist.new_group(timeout=timedelta(seconds=20))
    if RANK < SIZE - 1:
        try:
            dist.monitored_barrier(group, timeout=timedelta(milliseconds=300))
        except dist.DistBackendError as error:
            note("late", str(error))
        if RANK == 0:
            work = dist.irecv(lib.ones(1), src=1)
            refused(dist.DistBackendError, "", lambda: work.wait(timeout=0.1))
            assert not work.is_completed()
        dist.barrier()
        if RANK == 1:
            dist.send(lib.ones(1), dst=0)
        if RANK == 0:
            work.wait()
    else:
        dist.barrier()


def train(end):
    """Steps until end(), in the last process, ends it in the middle of one."""
    net = lib.nn.parallel.DistributedDataParallel(lib.nn.Linear(4, 4))
    optimizer = lib.optim.SGD(net.parameters(), lr=0.01)
    for step in range(1000):
        if step == 5 and RANK == SIZE - 1:
            end()
        optimizer.zero_grad()
        net(normal(step, 2, 4)).square().mean().backward()
        optimizer.step()


def survive(end):
    try:
        train(end)
    except dist.DistBackendError as error:
        note("error", str(error))
        write()
        sys.exit(5 if signal.sigtimedwait([signal.SIGTERM], 30) else 6)


def wait_for_ever():
    """The first processes wait for the last, which sleeps."""
    dist.barrier()
    os.write(1, b"%d\n" % os.getpid())
    if RANK == SIZE - 1:
        time.sleep(600)
    dist.all_reduce(lib.ones(1))


def raise_one():
    raise ZeroDivisionError("of rank", RANK)


if how in ("killed", "raises", "exits"):
    # The launcher's signal waits until this process has written what it found.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if how == "restart":
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if first and RANK == SIZE - 1:
        sys.exit(3)
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
if how == "restart" and first:
    train(raise_one)
{
    "mistakes": mistakes, "late": late, "wait": wait_for_ever, "restart": dist.barrier,
    "killed": lambda: survive(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "raises": lambda: survive(raise_one),
    "exits": lambda: survive(lambda: sys.exit(7)),
}[how]()  # fmt: skip
finish()
