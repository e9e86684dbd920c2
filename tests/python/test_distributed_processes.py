"""Operations of several processes, beside PyTorch's: the same programs run with both libraries."""

import socket

import pytest

from process_runs import both, differences, is_close


@pytest.mark.parametrize("size", [2, 3])
def test_collectives(size, tmp_path):
    got, expected = both("collectives.py", size, tmp_path)
    assert not differences(got, expected)
    # What is known without PyTorch: the ranks' (0, 3, 1, 4, 2), (2, 0, 3, 1, 4), (4, 2, 0, 3, 1).
    sums = {2: [2, 3, 4, 5, 6], 3: [6, 5, 4, 8, 7]}[size]
    for found in got:
        for dtype in ("float32", "float64", "bfloat16", "int64", "int8", "uint8"):
            assert found[f"all_reduce SUM {dtype}"] == [dtype, [5], sums]
        assert found["broadcast int32"] == ["int32", [5], [2, 0, 3, 1, 4]]
        assert found["all_gather int32"][0][2] == [0, 3, 1, 4, 2]


def test_messages_and_objects(tmp_path):
    got, expected = both("messages.py", 3, tmp_path)
    assert not differences(got, expected)
    assert got[0]["any source"] == [[1, 10], [2, 20]]
    assert [entry["rank"] for entry in got[2]["all_gather_object"]] == [0, 1, 2]
    assert got[2]["broadcast_object_list"][2] == "last"


def test_groups_of_some_processes(tmp_path):
    got, expected = both("groups.py", 4, tmp_path)
    assert not differences(got, expected)
    assert [found["outside"] for found in got] == [[True, False], [False, False], [True, False], [False, True]]
    assert got[1]["numbers"] == got[3]["numbers"][:1] + [[3, 1], 2, 0]
    assert [found["groups of a mesh"] for found in got][:2] == [[[0, 2], [0, 1]], [[1, 3], [0, 1]]]


def test_gradients_of_operations(tmp_path):
    got, expected = both("gradients.py", 3, tmp_path)
    assert not differences(got, expected, is_close)


def test_ways_to_meet(tmp_path):
    with socket.socket() as a, socket.socket() as b, socket.socket() as c:
        for one in (a, b, c):
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in (a, b, c)]
    got, expected = both("meeting.py", 3, tmp_path, ports)
    assert not differences(got, expected)
    assert got[2]["count"] == [160, False, False]
    assert got[0]["own"] == ["of 0", "of 1", "of 2"]
