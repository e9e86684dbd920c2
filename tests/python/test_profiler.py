"""kiln.profiler.profile counts ops by name, and writes a trace that a browser can read."""

import json

import pytest

import kiln
from kiln.profiler import profile


def test_counts_of_a_training_step(tmp_path):
    layer = kiln.nn.Linear(8, 4)
    optimizer = kiln.optim.SGD(layer.parameters(), lr=0.1)
    with profile() as p:
        for _ in range(3):
            optimizer.zero_grad()
            layer(kiln.ones(2, 8)).sum().backward()
            optimizer.step()
    kiln.ones(3).exp()  # after its end
    rows = {row["op"]: row for row in p.rows()}
    assert rows["float_linear"]["count"] == 3
    assert rows["float_optimizer_step"]["count"] == 3
    assert "float_exp" not in rows
    assert all(row["seconds"] >= 0 and row["bytes"] >= 0 for row in rows.values())
    assert rows["float_linear"]["bytes"] == 3 * 4 * (2 * 8 + 4 * 8 + 4 + 2 * 4)
    assert "float_linear" in p.table()

    path = tmp_path / "trace.json"
    p.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(e["name"] == "float_linear" for e in events) == 3
    assert json.loads(p.trace())


def test_what_is_wrong():
    with pytest.raises(RuntimeError, match="nothing was profiled"):
        profile().table()
    with profile() as p:
        pass
    with pytest.raises(OSError):
        p.export_chrome_trace("/no such folder/trace.json")
