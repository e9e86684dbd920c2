"""kiln.train.predict: what a model of `kiln train` says, asked from Python."""

import csv
import subprocess

import pytest

import kiln
from kiln import errors
from kiln._command import program


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with an example of rows, and a run that has learned it."""
    try:
        found = str(program())
    except FileNotFoundError:
        pytest.skip("the program was not built")
    root = tmp_path_factory.mktemp("plants")
    train = lambda *more: subprocess.run([found, "train", *more], check=True, cwd=root, capture_output=True)
    train("--example", "csv", "--out", "data")
    train("data/config.json", "--epochs", "5", "--out", "run", "--plain")
    return root


def test_rows(run):
    table = run / "data" / "plants.csv"
    answers = kiln.train.predict(run / "run", table, top=2)
    with open(table) as file:
        rows = list(csv.DictReader(file))
    assert len(answers) == len(rows)
    right = sum(a["class"] == row["species"] for a, row in zip(answers, rows))
    assert right > 0.8 * len(rows)
    assert answers[3]["row"] == 4 and len(answers[3]["top"]) == 2
    assert 0.3 < answers[0]["probability"] <= 1
    assert kiln.train.predict(run / "run" / "model.safetensors", [table], batch=7)[5]["class"] == answers[5]["class"]


def test_what_is_wrong(run):
    with pytest.raises(errors.ValueError, match="none"):
        kiln.train.predict(run / "none", run / "data" / "plants.csv")
    bad = run / "bad.csv"
    bad.write_text((run / "data" / "plants.csv").read_text().splitlines()[0] + "\n1,2\n")
    with pytest.raises(errors.ValueError, match="bad.csv.*row 2"):
        kiln.train.predict(run / "run", bad)
    assert kiln.train.predict(run / "run", bad, skip_bad=True) == []
    with pytest.raises(errors.ValueError, match="this model is for"):
        kiln.train.predict(run / "run", texts=["a text"])
    for options in ({"top": 0}, {"batch": 1.5}, {"threads": 0}):
        with pytest.raises(errors.ValueError, match="must be an integer"):
            kiln.train.predict(run / "run", bad, **options)
