"""Profiles by PyTorch's names: schedules, blocks with a name, averages."""

import gzip
import json

import pytest

import kiln
from kiln.profiler import ProfilerAction, profile, record_function, schedule


def test_schedule_is_pytorchs(lib):
    for options in (
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 0, "skip_first": 1},
    ):
        plan, expected = lib.profiler.schedule(**options), schedule(**options)
        assert [plan(i).name for i in range(30)] == [expected(i).name for i in range(30)]
    with pytest.raises((ValueError, AssertionError)):
        lib.profiler.schedule(wait=1, warmup=1, active=0)


def test_steps_of_a_schedule():
    seen = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append({r["op"]: r["count"] for r in p.rows()}),
    ) as p:
        for i in range(10):
            _ = kiln.ones(3).exp() if i % 2 == 0 else kiln.ones(3).exp() + 1
            p.step()
    assert [counts["float_exp"] for counts in seen] == [2, 2]
    assert p.step_num == 10


def test_blocks_with_a_name():
    @record_function("twice")
    def twice(x):
        with record_function("inner"):
            return x * 2

    with profile() as p:
        twice(twice(kiln.ones(4)))
    counts = {row["op"]: row["count"] for row in p.rows()}
    assert counts["twice"] == counts["inner"] == 2
    twice(kiln.ones(1))
    assert {row["op"]: row["count"] for row in p.rows()} == counts
    seconds = {row["op"]: row["seconds"] for row in p.rows()}
    assert seconds["twice"] >= seconds["inner"] > 0


def test_averages():
    with profile(record_shapes=True, with_stack=False) as p:
        for _ in range(3):
            kiln.ones(4).exp()
    averages = p.key_averages()
    (found,) = [row for row in averages if row.key == "float_exp"]
    assert found.count == 3 and found.cpu_time == pytest.approx(found.cpu_time_total / 3)
    text = averages.table(sort_by="count", row_limit=1)
    assert len(text.splitlines()) == 2
    with pytest.raises(ValueError, match="unknown sort_by 'speed'"):
        averages.table(sort_by="speed")
    with pytest.raises(TypeError, match="unknown options"):
        profile(colour=True)


@pytest.mark.parametrize("zipped", [False, True])
def test_traces_for_tensorboard(tmp_path, zipped):
    handler = kiln.profiler.tensorboard_trace_handler(tmp_path / "traces", "w", zipped)
    with profile(on_trace_ready=handler):
        kiln.ones(4).exp()
    (file,) = (tmp_path / "traces").iterdir()
    text = gzip.open(file, "rt").read() if zipped else file.read_text()
    assert "float_exp" in text and json.loads(text)
    assert ProfilerAction.NONE.value == 0
