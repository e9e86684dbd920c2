"""Learner(progress="notebook"): one display that is drawn anew; IPython here is one that records."""

import json
import math
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln.train import Checkpoints, History, Interrupted, Learner
from kiln.train import notebook, pictures
from kiln.utils import data

SVG = "{http://www.w3.org/2000/svg}"


class Notebook:
    """What was displayed: for each display its pictures, as (html, text)."""

    def __init__(self):
        self.displays = []
        self.fails = False

    def display(self, thing, *, display_id=None):
        assert display_id is True
        pictures = [(thing._repr_html_(), repr(thing))]
        self.displays.append(pictures)

        def update(thing):
            if self.fails:
                raise OSError("no notebook is there any more")
            pictures.append((thing._repr_html_(), repr(thing)))

        return types.SimpleNamespace(update=update)

    @property
    def pictures(self):
        (pictures,) = self.displays
        return pictures


def ipython(monkeypatch, shell):
    """An IPython with such a shell, which displays into a Notebook."""
    book = Notebook()
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    module.display = types.ModuleType("IPython.display")
    module.display.display = book.display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)
    return book


@pytest.fixture
def book(monkeypatch):
    """A kernel whose clock goes a second further at each look, so that each step is drawn."""
    clock = iter(range(10**9))
    monkeypatch.setattr(notebook, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(notebook, "COST", 0)
    return ipython(monkeypatch, types.SimpleNamespace(kernel=object()))


def loader(n=96):
    x = np.random.default_rng(1).normal(size=(n, 4)).astype("float32")
    y = (x[:, 0] > x[:, 1]).astype("int64")
    both = data.TensorDataset(kiln.from_numpy(x), kiln.from_numpy(y))
    return data.DataLoader(both, batch_size=16)


def learner_of(kind=Learner, **options):
    kiln.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    options.setdefault("metrics", "accuracy")
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.05)
    return kind(model, optimizer, loss="classification", **options)


def tree(html):
    """The elements; fails unless both a parser of XML and one of HTML find the same."""
    root = ElementTree.fromstring(html)

    class Parser(HTMLParser):
        def __init__(self):
            super().__init__(convert_charrefs=True)
            self.open, self.tags, self.texts = [], [], []

        def handle_starttag(self, tag, attributes):
            self.open.append(tag)
            self.tags.append(tag)

        def handle_startendtag(self, tag, attributes):
            self.tags.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, text):
            self.texts.append(text)

    parser = Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert parser.tags == [e.tag.removeprefix(SVG).lower() for e in root.iter()]
    assert "".join(parser.texts) == "".join(root.itertext())
    assert "script" not in parser.tags and "http" not in html.replace(SVG[1:-1], "")
    return root


def numbers(root):
    """(split, metric) -> the number of the table of a picture, with all digits."""
    columns = [th.text for th in root.findall(".//thead/tr/th")][1:]
    found = {}
    for row in root.findall(".//tbody/tr"):
        metric = row.find("th").text
        for split, cell in zip(columns, row.findall("td"), strict=True):
            if cell.get("title") is not None:
                found[split, metric] = float(cell.get("title"))
    return found


# ---- Where it is shown


def test_a_kernel_has_it_by_itself(book, capfd):
    learner_of().fit(loader(), loader(), epochs=2)
    assert len(book.displays) == 1 and len(book.pictures) > 4
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progress", ["dashboard", "notebook"])
def test_a_kernel_has_it_when_asked(book, capfd, progress):
    learner_of(progress=progress).fit(loader(), epochs=1)
    assert len(book.displays) == 1 and capfd.readouterr().out == ""


@pytest.mark.parametrize("shell", [None, types.SimpleNamespace()])
def test_a_terminal_and_plain_ipython_have_lines(monkeypatch, capfd, shell):
    book = ipython(monkeypatch, shell)
    learner_of().fit(loader(), epochs=1)
    assert book.displays == [] and "epoch 1  train/loss" in capfd.readouterr().out


def test_ipython_shows_it_when_asked(monkeypatch, capfd):
    book = ipython(monkeypatch, types.SimpleNamespace())
    learner_of(progress="notebook").fit(loader(), epochs=1)
    assert len(book.displays) == 1 and capfd.readouterr().out == ""


def test_without_ipython_lines_stand_for_it(monkeypatch, capfd):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    learner_of(progress="notebook").fit(loader(), epochs=1)
    assert "epoch 1  train/loss" in capfd.readouterr().out
    assert "IPython" not in sys.modules


def test_kernels_choose_lines_when_told(book, capfd):
    learner_of(progress="plain").fit(loader(), epochs=1)
    assert book.displays == [] and "epoch 1" in capfd.readouterr().out
    learner_of(progress="quiet").fit(loader(), epochs=1)
    assert book.displays == [] and capfd.readouterr().out == ""


def test_nothing_imports_ipython():
    code = "import sys, kiln.train; kiln.train.Learner(kiln.nn.Linear(1, 1), progress='notebook')\n"
    subprocess.run([sys.executable, "-c", code + "assert 'IPython' not in sys.modules"], check=True)


def test_unknown_styles_are_named():
    with pytest.raises(kiln.errors.ValueError, match="progress must be one of .*'notebook'; got 'loud'"):
        learner_of(progress="loud")


# ---- What is shown


def test_the_last_picture_has_the_numbers_of_the_log(book, tmp_path):
    splits = {"valid": loader(), "street": loader(40)}
    learner = learner_of(folder=tmp_path, title="a run")
    learner.fit(loader(), splits, epochs=3)
    for html, _ in book.pictures:
        tree(html)
    root = tree(book.pictures[-1][0])
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["event"] == "epoch"][-1]
    expected = {
        tuple(name.split("/")): value for name, value in learner.history[-1].items() if "/" in name
    }
    assert len(expected) == 6 and numbers(root) == expected
    for (split, metric), value in expected.items():
        assert _in_line(last, f"{split}/{metric}") == pytest.approx(value, rel=1e-12)
    text = "".join(root.itertext())
    assert "a run" in text and "finished" in text and "3 epochs" in text and "step 18" in text
    assert root.find(".//*[@role='progressbar']").get("aria-valuenow") == "100.0"
    plain = book.pictures[-1][1]
    assert f"valid: loss {learner.history[-1]['valid/loss']:.6g}" in plain and "<" not in plain


def _in_line(line, name):
    return line[name] if name in line else line["values"][name]


def test_a_picture_within_an_epoch(book):
    learner_of(accumulate=2).fit(loader(), loader(), epochs=2)
    texts = [text for _, text in book.pictures]
    within = [t for t in texts if "epoch 2/2, step 4, batch 2 of 6" in t]
    assert within and "33 %" in within[0]
    assert re.search(r"batch 2 of 6, .* left, \d+ samples/s", within[0])
    assert "this epoch: loss" in within[0] and "valid: loss" in within[0]
    assert any("measuring valid" in t for t in texts)
    root = tree(book.pictures[texts.index(within[0])][0])
    assert root.find(".//*[@role='progressbar']").get("aria-valuenow") == "33.3"


def test_plots_hold_the_history(book):
    learner = learner_of()
    learner.fit(loader(), loader(), epochs=4)
    plots = tree(book.pictures[-1][0]).findall(f".//{SVG}svg")
    assert [p.find(f"{SVG}title").text for p in plots] == ["loss by epoch", "accuracy by epoch"]
    for metric, drawn in zip(("loss", "accuracy"), plots):
        lines = drawn.findall(f"{SVG}polyline")
        assert len(lines) == 2
        # Heights are a linear function of the values, the same for both lines.
        heights, values = [], []
        for split, line in zip(("train", "valid"), lines):
            points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
            assert [p[0] for p in points] == sorted(p[0] for p in points)
            heights += [p[1] for p in points]
            values += [row[f"{split}/{metric}"] for row in learner.history]
        assert len(heights) == len(values) == 8
        slope, offset = np.polyfit(values, heights, 1)
        assert slope < 0
        np.testing.assert_allclose(np.polyval([slope, offset], values), heights, atol=0.1)


def test_pictures_are_few(monkeypatch):
    book = ipython(monkeypatch, types.SimpleNamespace(kernel=object()))
    now = [0.0]

    def train_step(learner, batch):
        now[0] += 0.01
        return Learner.train_step(learner, batch)

    monkeypatch.setattr(notebook, "monotonic", lambda: now[0])
    slow = type("Slow", (Learner,), {"train_step": train_step})
    learner_of(slow).fit([next(iter(loader()))] * 300, epochs=2)  # of 3 seconds each
    by_clock = 6.0 / notebook.BETWEEN_DRAWS
    assert by_clock * 0.8 < len(book.pictures) <= by_clock + 4
    texts = [text for _, text in book.pictures]
    for epoch in (1, 2):  # at each end
        assert any(f"epoch {epoch}/2, step {300 * epoch}" in t for t in texts)


def test_names_are_escaped(book):
    class Evil(Learner):
        def train_step(self, batch):
            return {**super().train_step(batch), "<b>&\"'\x00": 1.5}

    learner = learner_of(Evil, title="<script>alert(1)</script>")
    history = learner.fit(loader(), {"<i>&": loader()}, epochs=2)
    for html in [html for html, _ in book.pictures] + [history._repr_html_()]:
        tree(html)
        assert not re.search(r"<(script|i|b)>(?!&lt;script)", html.replace("<b>&lt;", ""))
    found = numbers(tree(book.pictures[-1][0]))
    assert found["train", "<b>&\"'\ufffd"] == 1.5
    assert ("<i>&", "loss") in found


# ---- Ends


class Breaking(Learner):
    def train_step(self, batch):
        if self.step == 8:
            raise ZeroDivisionError("<the step> broke")
        return super().train_step(batch)


def test_an_error_is_shown_and_raised(book, capfd):
    with pytest.raises(ZeroDivisionError, match="<the step> broke"):
        learner_of(Breaking).fit(loader(), loader(), epochs=3)
    root = tree(book.pictures[-1][0])
    alert = root.find(".//*[@role='alert']").text
    assert "ZeroDivisionError: <the step> broke" in alert
    assert "epoch 2, after batch 2 (step 8)" in alert and "Nothing is saved" in alert
    assert "failed" in "".join(root.itertext()) and "ZeroDivisionError" in book.pictures[-1][1]
    assert capfd.readouterr().out == ""


def test_an_error_says_how_to_go_on(book, tmp_path):
    options = {"folder": tmp_path, "checkpoints": Checkpoints(every_steps=4, every_epochs=None)}
    with pytest.raises(ZeroDivisionError):
        learner_of(Breaking, **options).fit(loader(), epochs=3)
    alert = tree(book.pictures[-1][0]).find(".//*[@role='alert']").text
    assert "fit(..., resume=True) goes on from it" in alert and "of step " in alert
    del book.displays[:]
    learner = learner_of(**options)
    learner.fit(loader(), epochs=3, resume=True)
    assert "Going on from" in book.pictures[0][1] + book.pictures[1][1]
    assert "finished" in book.pictures[-1][1] and learner.step == 18


def test_an_error_before_the_first_checkpoint(book, tmp_path):
    options = {"folder": tmp_path, "checkpoints": Checkpoints(every_epochs=5)}
    with pytest.raises(ZeroDivisionError):
        learner_of(Breaking, **options).fit(loader(), epochs=3)
    assert "There is no checkpoint yet" in book.pictures[-1][0]


def test_an_error_of_the_first_look_at_a_split(book):
    with pytest.raises(TypeError, match="batch must be"):
        learner_of().fit(loader(), [object()], epochs=1)
    assert "failed" in book.pictures[-1][1] and "before the run" in book.pictures[-1][0]


def test_a_run_that_is_interrupted(book, tmp_path, ctrl_c_counts):
    import signal

    learner = learner_of(folder=tmp_path)
    # To this thread: another one would tell it at some later step, or after the last.
    learner.on("step_end", lambda learner: learner.step == 8 and signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted):
        learner.fit(loader(), epochs=3)
    assert len(book.displays) == 1
    html, text = book.pictures[-1]
    root = tree(html)
    assert "interrupted" in text and "Go on with: fit(..., resume=True)" in "".join(root.itertext())


def test_a_run_that_is_stopped(book):
    learner = learner_of()
    learner.on("epoch_end", lambda learner, values: learner.stop("it is <good> enough"))
    learner.fit(loader(), epochs=3)
    assert tree(book.pictures[-1][0]).find(".//*[@role='alert']").text == "Stopped: it is <good> enough"


def test_each_fit_has_its_display(book):
    learner = learner_of()
    learner.fit(loader(), epochs=1)
    learner.fit(loader(), epochs=2)
    assert len(book.displays) == 2
    learner.evaluate(loader())
    assert len(book.displays) == 2
    assert learner._view._learner is None  # nothing keeps the model


def test_a_display_that_fails_ends_no_run(book):
    learner = learner_of()
    learner.on("step_end", lambda learner: setattr(book, "fails", learner.step > 3))
    with pytest.warns(UserWarning, match="notebook view ends: OSError: no notebook") as warned:
        learner.fit(loader(), epochs=2)
    assert len(warned) == 1 and learner.epoch == 2


def test_the_run_is_the_same_with_and_without_it(book):
    shown, quiet = learner_of(), learner_of(progress="quiet")
    shown.fit(loader(), loader(), epochs=2)
    quiet.fit(loader(), loader(), epochs=2)
    for a, b in zip(shown.model.parameters(), quiet.model.parameters(), strict=True):
        assert kiln.equal(a, b)


# ---- The history and its plots


def test_a_history_is_a_list_that_notebooks_show(tmp_path):
    learner = learner_of(progress="quiet", folder=tmp_path)
    history = learner.fit(loader(), loader(), epochs=2)
    assert isinstance(history, list) and isinstance(history, History) and history is learner.history
    assert repr(history) == repr(list(history))
    root = tree(history._repr_html_())
    names = [th.text for th in root.findall(".//thead/tr/th")]
    assert names == list(history[0])
    for row, shown in zip(history, root.findall(".//tbody/tr"), strict=True):
        cells = shown.findall("td")
        assert cells[0].text == str(row["epoch"])
        assert [float(c.get("title")) for c in cells[1:]] == list(row.values())[1:]
    assert len(root.findall(f".//{SVG}svg")) == 2
    # Checkpoints hold a plain list.
    path = sorted((tmp_path / "checkpoints").glob("*.pt"))[-1]
    assert type(kiln.load(path)["history"]) is list
    again = learner_of(progress="quiet", folder=tmp_path)
    assert again.fit(loader(), loader(), epochs=2, resume=True) == history
    assert isinstance(again.history, History)


def test_histories_of_all_kinds():
    tree(History()._repr_html_())
    odd = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 5e-324]
    rows = [{"epoch": i + 1, "train/loss": v, "a/b/c": -v} for i, v in enumerate(odd)]
    for some in ([rows[0]], rows[:3], rows, rows[3:5], [rows[5]] * 3, rows[5:]):
        tree(History(some)._repr_html_())
    tree(History([{"train/loss": 1.0, "note": "<b>"}, {"train/loss": "none", "x/y": None}])._repr_html_())
    long = History({"epoch": i + 1, "train/loss": float(i == 777)} for i in range(5000))
    html = long._repr_html_()
    assert len(html) < 30_000 and "first 4950 of 5000" in html
    points = tree(html).find(f".//{SVG}polyline").get("points").split()
    heights = [float(p.split(",")[1]) for p in points]
    assert len(points) <= pictures.MOST_POINTS and min(heights) < max(heights) - 90  # the peak
    many = History([{"epoch": 1, **{f"train/m{i}": 0.5 for i in range(40)}}])
    assert "28 more metrics" in many._repr_html_()


def test_lines_have_gaps_where_no_number_is():
    points = [(1, 3.0), (2, 2.0), (3, math.nan), (4, 1.0), (5, 0.5)]
    drawn = ElementTree.fromstring(pictures.plot("loss", {"train": points}))
    assert [len(p.get("points").split()) for p in drawn.findall(f"{SVG}polyline")] == [2, 2]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.5, 1]), (0.1, 0.9, [0.2, 0.4, 0.6, 0.8]), (3, 47, [20, 40]), (-1, 1, [-1, 0, 1]), (99, 101, [99, 100, 101])],
)
def test_ticks_are_round(low, high, expected):
    got = pictures.ticks(low, high)
    assert set(np.round(expected, 9)) <= set(np.round(got, 9)) and 2 <= len(got) <= 5
    assert all(low <= t <= high for t in got)


def luminance(color):
    """WCAG 2.2: relative luminance."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("paper", ["#ffffff", "#111111"])
def test_lines_are_readable_on_light_and_dark(paper):
    for color in pictures.COLORS:
        a, b = sorted((luminance(color), luminance(paper)))
        assert (b + 0.05) / (a + 0.05) >= 3, color  # what WCAG asks of graphics
    text = pictures.plot("loss", {"train": [(1, 1.0), (2, 0.5)]})
    assert 'fill="currentColor"' in text and "background" not in text


def test_progress_counts_steps_where_batches_are_gathered():
    started, advanced = [], []

    class Recorder:
        def start(self, label, total, done=0, later=0):
            started.append((label, total, done, later))

        def advance(self, samples):
            advanced.append(samples)
            return False

        def finish(self):
            pass

        def print(self, line):
            pass

    learner = learner_of(progress="quiet", accumulate=4)
    learner._progress = Recorder()
    learner.fit(loader(), epochs=2)  # 6 batches: steps of 4 and of 2
    assert [s[1:] for s in started] == [(2, 0, 2), (2, 0, 0)] and len(advanced) == 4
