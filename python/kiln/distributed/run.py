"""python -m kiln.distributed.run: a program as several processes, with torchrun's options."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from .. import _C, cuda, errors

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def _processes(text: str) -> int:
    if text in ("auto", "cpu"):
        return os.cpu_count() or 1
    if text == "gpu":
        return max(1, cuda.device_count())
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, auto, cpu or gpu; got {text!r}") from None


def _machines(text: str) -> int:
    """A number, or torchrun's LEAST:MOST."""
    try:
        return max(int(part) for part in text.split(":", 1))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number; got {text!r}") from None


# Options of torchrun's that have no effect here.
_IGNORED = (
    "--rdzv-backend", "--rdzv-id", "--rdzv-conf", "--local-addr", "--role", "--start-method",
    "--monitor-interval", "--tee", "-t", "--redirects", "-r", "--local-ranks-filter", "--logs-specs",
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kiln.distributed.run",
        description="Starts a program as several processes, which init_process_group() makes a group.",
    )
    add = parser.add_argument
    add("--nproc-per-node", "--nproc_per_node", type=_processes, default=1, metavar="N",
        help="processes on this machine: a number, auto, cpu or gpu (default 1)")  # fmt: skip
    add("--nnodes", type=_machines, default=1, metavar="N", help="machines (default 1)")
    add("--node-rank", "--node_rank", type=int, default=0, metavar="I",
        help="which machine this is, from 0 on")  # fmt: skip
    add("--master-addr", "--master_addr", default="127.0.0.1", metavar="HOST",
        help="the machine of number 0 (default 127.0.0.1)")  # fmt: skip
    add("--master-port", "--master_port", type=int, default=0, metavar="PORT",
        help="a port of it (default: a free one, for one machine)")  # fmt: skip
    add("--rdzv-endpoint", "--rdzv_endpoint", default="", metavar="HOST:PORT",
        help="the same two in one")  # fmt: skip
    add("--standalone", action="store_true", help="one machine, a free port: the default")
    add("--max-restarts", "--max_restarts", type=int, default=0, metavar="N",
        help="how often all begin again after one failed (default 0)")  # fmt: skip
    add("--log-dir", "--log_dir", default="", metavar="FOLDER",
        help="where output goes, as RANK.log (default: here)")  # fmt: skip
    add("-m", "--module", action="store_true", help="the program is a module, as of python -m")
    add("--no-python", "--no_python", action="store_true", help="the program is no Python program")
    for name in _IGNORED:
        other = name.replace("-", "_").replace("__", "--", 1)
        names = [name, other] if name.count("-") > 2 else [name]
        add(*names, help=argparse.SUPPRESS)
    add("program", help="what is started")
    add("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a program as several processes: 0, or the status of the first that failed.

    arguments: of the command; without them the interpreter's.

    >>> from kiln.distributed.run import main
    >>> main(["--nproc-per-node", "2", "--no-python", "true"])
    0
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    host, port = options.master_addr, options.master_port
    if options.rdzv_endpoint:
        host, _, text = options.rdzv_endpoint.rpartition(":")
        if not host or not text.isdigit():
            parser.error(f"--rdzv-endpoint: expected HOST:PORT; got {options.rdzv_endpoint!r}")
        port = int(text)
    if options.standalone:
        host, port = "127.0.0.1", 0
    if not 0 <= port <= 65535:
        parser.error(f"the port must be in [0, 65535]; got {port}")
    command = [options.program, *options.arguments]
    if options.module:
        command = [sys.executable, "-u", "-m", *command]
    elif not options.no_python:
        command = [sys.executable, "-u", *command]
    if options.log_dir:
        os.makedirs(options.log_dir, exist_ok=True)
    try:
        return int(
            _C._distributed.launch(
                command, options.nproc_per_node, options.nnodes, options.node_rank, host, port,
                options.max_restarts, options.log_dir,
            )
        )  # fmt: skip
    except errors.Error as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
