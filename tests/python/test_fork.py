"""Processes made by fork(), as multiprocessing makes them for workers that read data."""

import multiprocessing
import os
import subprocess
import sys

import kiln


def _work(threads):
    kiln.set_num_threads(threads)
    x = kiln.ones(512, 512, requires_grad=True)
    (x @ x).sum().backward()
    return kiln.get_num_threads(), float(x.grad.sum())


def test_a_forked_worker_computes():
    kiln.ones(512, 512) @ kiln.ones(512, 512)  # this process has its threads now
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(_work, [1, os.cpu_count()]).get(timeout=120)
    for _, total in results:
        assert total == 2 * 512**3
    assert results[0][0] == 1


def test_it_begins_with_one_thread():
    script = """
import os, kiln
kiln.ones(1 << 20).sum()
child = os.fork()
if child == 0:
    os._exit(kiln.get_num_threads())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "1", done.stderr
