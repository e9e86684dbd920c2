"""python -m kiln.distributed.run: what it starts, and which options it refuses."""

import json
import os
import subprocess
import sys

import pytest

from kiln.distributed.run import main
from process_runs import LAUNCHER

SHOW = """
import json, os, sys
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
         "OMP_NUM_THREADS", "TORCHELASTIC_RESTART_COUNT"]
print(json.dumps([[os.environ.get(name) for name in names], os.environ["MASTER_PORT"], sys.argv[1:]]))
"""


def shown(folder, *options, module=False, arguments=(), **variables):
    """What the processes of a launch see of their environment, by rank."""
    (folder / "show.py").write_text(SHOW)
    program = ["-m", "show"] if module else [str(folder / "show.py")]
    command = [*LAUNCHER, "--log-dir", str(folder / "logs"), *options, *program, *arguments]
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    environment = {key: value for key, value in environment.items() if value is not None}
    subprocess.run(command, check=True, timeout=60, env=environment)
    files = sorted((folder / "logs").iterdir(), key=lambda file: int(file.stem))
    return [json.loads(file.read_text()) for file in files]


def test_the_environment(tmp_path):
    found = shown(
        tmp_path, "--standalone", "--nproc-per-node=2", arguments=["--lr", "1", "--", "-m"],
        OMP_NUM_THREADS=None,
    )  # fmt: skip
    threads = str(max(1, (os.cpu_count() or 1) // 2))
    expected = [["0", "2", "0", "2", "0"], ["1", "2", "1", "2", "0"]]
    for (values, port, arguments), start in zip(found, expected, strict=True):
        assert values == [*start, "127.0.0.1", threads, "0"]
        assert arguments == ["--lr", "1", "--", "-m"] and port == found[0][1] and int(port) > 0


def test_one_of_several_machines(tmp_path):
    found = shown(
        tmp_path, "--nnodes", "3", "--node_rank", "1", "--nproc_per_node", "2",
        "--rdzv-endpoint", "localhost:29511", "--rdzv_backend", "c10d", module=True, OMP_NUM_THREADS="3",
    )  # fmt: skip
    assert [values[0] for values, *_ in found] == ["2", "3"]
    assert [values[1:] for values, *_ in found] == [
        ["6", local, "2", "1", "localhost", "3", "0"] for local in ("0", "1")
    ]
    assert {port for _, port, _ in found} == {"29511"}


@pytest.mark.parametrize(
    "arguments, text",
    [
        ([], "required: program"),
        (["--nproc-per-node", "many", "p.py"], "expected a number, auto, cpu or gpu; got 'many'"),
        (["--nproc-per-node", "2", "--no-such-option", "p.py"], "no-such-option"),
        (["--rdzv-endpoint", "host", "p.py"], "expected HOST:PORT; got 'host'"),
        (["--master-port", "70000", "p.py"], "[0, 65535]; got 70000"),
        (["--max-restarts", "few", "p.py"], "invalid int value: 'few'"),
    ],
)
def test_options_that_are_refused(arguments, text, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    printed = capsys.readouterr().err
    assert end.value.code == 2 and text in printed and "usage: python -m kiln.distributed.run" in printed


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--nproc-per-node", "0"], "must be in [1, 4096]; got 0"),
        (["--nnodes", "2"], "master's port must be given"),
        (["--nnodes", "2", "--node-rank", "2", "--master-port", "1"], "[0, nodes); got 2"),
        (["--max-restarts", "-1"], "max_restarts must not be negative; got -1"),
    ],
)
def test_numbers_that_are_refused(arguments, text, capfd):
    assert main([*arguments, "--no-python", "true"]) == 1
    assert text in capfd.readouterr().err


def test_status(capfd):
    assert main(["--nproc-per-node", "2", "--no-python", "true"]) == 0
    assert main(["--nproc-per-node", "2", "--no-python", "sh", "-c", "exit $((RANK * 4))"]) == 4
    assert main(["--no-python", "sh", "-c", "kill -9 $$"]) == 128 + 9
    assert main(["--no-python", "no-such-program"]) == 1
    assert "cannot start no-such-program" in capfd.readouterr().err
    again = "exit $((TORCHELASTIC_RESTART_COUNT < 2))"
    assert main(["--max-restarts", "2", "--no-python", "sh", "-c", again]) == 0
    assert main(["--max-restarts", "1", "--no-python", "sh", "-c", again]) == 1


def test_help():
    for name in ("run", "launch"):
        done = subprocess.run(
            [sys.executable, "-m", f"kiln.distributed.{name}", "--help"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0 and "--nproc-per-node" in done.stdout
