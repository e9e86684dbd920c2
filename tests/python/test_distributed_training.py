"""Networks that several processes train, beside PyTorch's and beside one process with the whole batch:
what the programs say of themselves, they check."""

import pytest

from process_runs import both, differences, is_close, results


@pytest.mark.parametrize("size", [2, 3])
def test_distributed_data_parallel(size, tmp_path):
    if size == 2:
        got, expected = both("parallel.py", size, tmp_path)
        assert not differences(got, expected, is_close)
    else:
        got = results("parallel.py", size, tmp_path)
    for name in ("gradients of branches 1", "gradients of autocast", "weights"):
        assert got[0][name] == got[-1][name], name  # to the bit
    assert all(found["bfloat16"] for found in got)


@pytest.mark.parametrize("size", [2, 3])
def test_batch_norm_of_all_processes(size, tmp_path):
    if size == 2:
        got, expected = both("norms.py", size, tmp_path)
        assert not differences(got, expected, is_close)
    else:
        results("norms.py", size, tmp_path)


def test_communication_hooks(tmp_path):
    got, expected = both("comm_hooks.py", 2, tmp_path)
    assert not differences(got, expected, is_close)
    assert got[0]["halved"] == got[1]["halved"]


def test_sharded_optimizers_and_data(tmp_path):
    got, expected = both("sharded.py", 3, tmp_path)
    assert not differences(got, expected, is_close)
    assert [found["in order"][:2] for found in got] == [[0, 3], [1, 4], [2, 5]]
