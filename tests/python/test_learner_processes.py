"""A Learner of several processes: beside one process, after a crash, and what its folder holds."""

from process_runs import differences, found_by, is_close, launch, results

SIZE = ["--nproc-per-node", "2"]


def test_a_learner_trains_and_measures_as_in_one_process(tmp_path):
    alone = results("learner.py", 1, tmp_path, arguments=["", 2, "", 0, 0])[0]
    assert ["valid/accuracy", alone["measured"][1]] in alone["history"]
    for size in (2, 3):
        found = results("learner.py", size, tmp_path, arguments=["", 2, "", 0, 0])
        assert differences(found, [alone] * size, is_close) == []


def test_a_run_goes_on_with_the_same_bits_after_a_process_was_killed(tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    expected = results("learner.py", 2, tmp_path, arguments=[whole, 3, "", 0, 0.3])
    done = launch(SIZE, "learner.py", "kiln", tmp_path, part, 3, "", 7, 0.3)
    assert done.returncode == 128 + 9
    assert "lost the process of rank 1" in done.stderr and "of step " in done.stderr
    # A run without a crash would have to say so.
    done = launch(SIZE, "learner.py", "kiln", tmp_path, part, 3, "", 0, 0.3)
    assert done.returncode != 0 and "expected resume=True" in done.stderr
    found = results("learner.py", 2, tmp_path, arguments=[part, 3, "resume", 0, 0.3])
    assert found == expected
    assert found[0]["weights"] == found[1]["weights"]
    # The first process alone wrote.
    steps = [line for line in (part / "log.jsonl").read_text().splitlines() if '"epoch_end"' in line]
    assert len(steps) == len(set(steps))


def test_the_launcher_begins_a_run_again(tmp_path):
    expected = results("learner.py", 2, tmp_path, arguments=[tmp_path / "a", 2, "", 0, 0])
    options = [*SIZE, "--max-restarts", "1"]
    done = launch(options, "learner.py", "kiln", tmp_path, tmp_path / "b", 2, "resume", 7, 0)
    assert done.returncode == 0 and "lost the process of rank 1" in done.stderr
    assert [found_by(rank, tmp_path) for rank in range(2)] == expected
