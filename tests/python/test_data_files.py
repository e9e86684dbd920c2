"""Data sets over files: what they hold, and what is said of files that are damaged."""

import collections
import gzip
import importlib.util
import io
import json
import pickle
import random
import sqlite3
import struct
import tarfile
import zlib

import numpy as np
import pytest

import kiln
from kiln import errors
from kiln.utils import data


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ---- Tables


def test_csv(tmp_path):
    path = write(tmp_path, "a.csv", '\ufeffage,name,score,ok\n3,"Ann, B",1,true\n\n4,"x\ny",2.5,false\n')
    table = data.CSVDataset(path, types={"ok": bool})
    assert len(table) == 2 and table.skipped == 0
    assert table[0] == {"age": 3, "name": "Ann, B", "score": 1.0, "ok": True}
    assert table[-1] == {"age": 4, "name": "x\ny", "score": 2.5, "ok": False}
    assert table.columns["age"].dtype == kiln.int64 and table.columns["score"].dtype == kiln.float64
    x, y = data.CSVDataset(path, types={"ok": bool}, features=["age", "score"], target="ok")[1]
    assert x.tolist() == [4, 2.5] and x.dtype == kiln.float32 and y is False
    with pytest.raises(IndexError):
        table[2]

    path = write(tmp_path, "b.csv", "1;2\n3;4\n")
    assert data.CSVDataset(path, header=False, delimiter=";")[1] == {"0": 3, "1": 4}
    bare = data.CSVDataset(path, header=["a", "b"], delimiter=";", target="b")
    batches = list(data.DataLoader(bare, batch_size=2, num_workers=1))
    assert batches[0][0].tolist() == [[1], [3]] and batches[0][1].tolist() == [2, 4]
    assert pickle.loads(pickle.dumps(bare))[0][1] == 2


BAD_ROWS = [
    ("3\n", "row 3: expected 2 values; got 1"),
    ("3,4,5\n", "row 3: expected 2 values; got 3"),
    ("3,x\n", "row 3, column 'b': expected a number; got 'x'"),
    ("3,\n", "row 3, column 'b': it is empty"),
    ("3.5,1\n", "row 3, column 'a': expected an integer; got 3.5"),
    ("99999999999999999999,1\n", "row 3, column 'a': expected an integer of 64 bits"),
    (b"3,\xff4\n", "row 3, column 'b': the text is no UTF-8"),
    ('3,"4"x\n', "row 3: a field goes on behind its quotes"),
]


@pytest.mark.parametrize("row, message", BAD_ROWS)
def test_bad_rows_of_csv(tmp_path, row, message):
    row = row.encode() if isinstance(row, str) else row
    path = write(tmp_path, "bad.csv", b"a,b\n1,2.5\n" + row + b"7,8\n")
    with pytest.raises(errors.ValueError) as caught:
        data.CSVDataset(path, types={"a": int})
    assert str(caught.value).startswith(f"CSVDataset: {str(path)!r}, {message}")
    table = data.CSVDataset(path, types={"a": int}, errors="skip")
    assert table.skipped == 1 and [r["a"] for r in (table[0], table[1])] == [1, 7]


def random_field(chance, kind):
    number = chance.choice([
        lambda: str(chance.randint(-(10**chance.randint(1, 18)), 10**18)),
        lambda: repr(chance.uniform(-1, 1) * 10 ** chance.randint(-30, 30)),
        lambda: f"{chance.uniform(-1000, 1000):.{chance.randint(0, 17)}f}",
        lambda: chance.choice(["-0", "-0.0", ".5", "5.", "+7", " 8", "9\t", "1e5", "-2.5E-3", "nan", "inf", "007"]),
    ])()  # fmt: skip
    if kind == "text":
        return chance.choice(["a", "", "x y", '"quoted, with ""marks"" "', '"two\nlines"', number])
    if kind == "int":
        return number if number.strip().lstrip("+-").isdigit() else "12"
    return number if chance.random() < 0.98 else chance.choice(["", "many", "1,2", '"3"', "99999999999999999999", "-", "1x"])


def outcome(make):
    """What a table holds, or what is said of it."""
    try:
        table = make()
    except errors.Error as error:
        return str(error).split(" expected")[0].split(" the text")[0]
    columns = {
        name: (str(c.dtype), c.numpy().tobytes()) if isinstance(c, kiln.Tensor) else c
        for name, c in table.columns.items()
    }
    return columns, table.skipped, len(table)


def test_csv_by_two_readers(tmp_path):
    """Files of every sort of number, of quotes and of rows that do not fit: Python's csv gives the same."""
    chance = random.Random(1)
    told = 0
    for trial in range(150):
        kinds = [chance.choice(["int", "real", "real", "text"]) for _ in range(chance.randint(1, 4))]
        rows = [[random_field(chance, kind) for kind in kinds] for _ in range(chance.randint(0, 40))]
        end = chance.choice(["\n", "\r\n"])
        lines = [",".join(f"c{i}" for i in range(len(kinds))), *(",".join(row) for row in rows)]
        if chance.random() < 0.5:
            lines.insert(chance.randint(0, len(lines)), "")
        text = end.join(lines) + (end if chance.random() < 0.7 else "")
        path = write(tmp_path, "a.csv", text)
        types = {"c0": int} if kinds[0] == "int" and chance.random() < 0.5 else {}
        for policy in ("raise", "skip"):
            fast, plain = (
                outcome(lambda: data.CSVDataset(path, types=types, errors=policy, encoding=encoding))
                for encoding in ("utf-8", "ascii")
            )
            assert fast == plain, text
            told += isinstance(fast, str)
    assert told > 20


def test_a_long_csv(tmp_path):
    """Longer than what one thread reads at a time; one number is none, far from the beginning."""
    rng = np.random.default_rng(0)
    reals = rng.normal(size=(60_000, 3)) * 10.0 ** rng.integers(-8, 8, (60_000, 3))
    whole = rng.integers(-(2**40), 2**40, (60_000, 2))
    lines = [f"{a!r},{b:.6f},{i},{j},{c!r}" for (a, b, c), (i, j) in zip(reals.tolist(), whole.tolist())]
    lines[50_000] = lines[50_000].replace(f",{whole[50_000, 1]},", ",1.5,")
    path = write(tmp_path, "long.csv", "a,b,i,j,c\n" + "\n".join(lines))
    for threads in (1, 2):
        before = kiln.get_num_threads()
        kiln.set_num_threads(threads)
        table = data.CSVDataset(path)
        kiln.set_num_threads(before)
        assert len(table) == 60_000 and table.columns["i"].dtype == kiln.int64
        assert (table.columns["a"].numpy() == reals[:, 0]).all()
        assert (table.columns["b"].numpy() == [float(f"{b:.6f}") for b in reals[:, 1]]).all()
        assert (table.columns["c"].numpy() == reals[:, 2]).all()
        assert (table.columns["i"].numpy() == whole[:, 0]).all()
        expected = whole[:, 1].astype(float)
        expected[50_000] = 1.5
        assert (table.columns["j"].numpy() == expected).all()
    lines[55_000] = "1,2,3"
    path = write(tmp_path, "long.csv", "a,b,i,j,c\n" + "\n".join(lines))
    with pytest.raises(errors.ValueError, match="row 55002: expected 5 values; got 3"):
        data.CSVDataset(path)
    table = data.CSVDataset(path, errors="skip", features=["a", "b"], target="i")
    assert len(table) == 59_999 and table.skipped == 1
    order = [59_998, 0, 54_999, 55_000]
    (x, y), plain = table._gathered(order), data.default_collate([table[i] for i in order])
    assert kiln.equal(x, plain[0]) and kiln.equal(y, plain[1]) and y.dtype == plain[1].dtype
    assert y[3].item() == whole[55_001, 0]


def test_json_lines(tmp_path):
    rows = [{"x": [1, 2], "y": 1, "s": "é"}, {"x": [3, 4], "y": 2.5, "s": "b", "more": None}]
    good = "\n\n".join(json.dumps(r) for r in rows)
    table = data.JSONLinesDataset(write(tmp_path, "a.jsonl", good))
    assert table[1] == {"x": [3, 4], "y": 2.5, "s": "b"} and table[0]["y"] == 1
    for line, message in (
        (b'{"x": [1], "y": 2}', "row 4, column 's': it is missing"),
        (b'{"x": [1], "y": "2", "s": "b"}', "row 4, column 'y': expected float; got '2'"),
        (b'{"x": [1], "y": null, "s": "b"}', "row 4, column 'y': it is missing"),
        (b'{"x": [1], "y": 2', "row 4: it is not JSON"),
        (b"[1, 2]", "row 4: expected an object; got [1, 2]"),
        (b'{"s": "\xff"}', "row 4, byte 8: the text is not utf-8"),
        (b"[" * 100000, "row 4: it is not JSON"),
    ):
        path = write(tmp_path, "b.jsonl", good.encode() + b"\n" + line + b"\n")
        with pytest.raises(errors.ValueError) as caught:
            data.JSONLinesDataset(path)
        assert str(caught.value).startswith(f"JSONLinesDataset: {str(path)!r}, {message}")
        table = data.JSONLinesDataset(path, errors="skip")
        assert len(table) == 2 and table.skipped == 1


def test_sqlite(tmp_path):
    path = tmp_path / "a ?#.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE house (rooms INTEGER, area REAL, price REAL, town TEXT)")
        connection.executemany(
            "INSERT INTO house VALUES (?, ?, ?, ?)",
            [(2, 50, 100.5, "a"), (3, 70.5, 200, "b"), (None, 1, 2, "c"), (4, 90, "much", "a")],
        )
    connection.close()
    ask = "SELECT rooms, area, price FROM house WHERE town != ? ORDER BY rooms DESC"
    with pytest.raises(errors.ValueError, match="row 2, column 'rooms': it is missing"):
        data.SQLiteDataset(path, ask, ("a",))
    table = data.SQLiteDataset(path, ask, ("z",), types={"price": float}, errors="skip", target="price")
    assert table.skipped == 2 and len(table) == 2
    assert table[0][0].tolist() == [3, 70.5] and table[0][1] == 200
    for query, message in (("SELECT x FROM y", "no such table"), ("DELETE FROM house", "readonly")):
        with pytest.raises(errors.IoError, match=message):
            data.SQLiteDataset(path, query)
    with pytest.raises(errors.ValueError, match="gives no rows"):
        data.SQLiteDataset(path, "BEGIN")
    with pytest.raises(errors.IoError, match="not a database"):
        data.SQLiteDataset(write(tmp_path, "no.db", "no database at all" * 100), "SELECT 1 FROM x")


def test_tables_say_what_is_wrong(tmp_path, monkeypatch):
    path = write(tmp_path, "a.csv", "a,b,t\n1,2,x\n")
    for call, error, message in (
        (lambda: data.CSVDataset(tmp_path / "none.csv"), "FileNotFoundError", "no file"),
        (lambda: data.CSVDataset(tmp_path), "FileNotFoundError", "no file"),
        (lambda: data.CSVDataset(path, errors="ignore"), "ValueError", "'raise' or 'skip'"),
        (lambda: data.CSVDataset(path, types={"z": int}), "KeyError", "no column 'z'"),
        (lambda: data.CSVDataset(path, types={"a": complex}), "TypeError", "column 'a' must be"),
        (lambda: data.CSVDataset(path, target="z"), "KeyError", "no column 'z'"),
        (lambda: data.CSVDataset(path, target="a"), "TypeError", "columns of numbers; got t"),
        (lambda: data.CSVDataset(path, features=["a"]), "ValueError", "need a target"),
        (lambda: data.CSVDataset(write(tmp_path, "c.csv", "a,a\n1,2\n")), "ValueError", "twice"),
    ):
        with pytest.raises(getattr(errors, error), match=message):
            call()
    assert len(data.CSVDataset(write(tmp_path, "d.csv", ""))) == 0
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for kind in (data.ParquetDataset, data.ArrowDataset):
        with pytest.raises(errors.RuntimeError, match="pip install pyarrow"):
            kind(path)


@pytest.mark.skipif(not importlib.util.find_spec("pyarrow"), reason="pyarrow is not installed")
def test_parquet_and_arrow(tmp_path):
    import pyarrow
    from pyarrow import feather, parquet

    table = pyarrow.table({"a": [1, 2, None], "s": ["x", "y", "z"], "v": [[1.0], [2.0], [3.0]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    for kind, name in ((data.ParquetDataset, "a.parquet"), (data.ArrowDataset, "a.arrow")):
        with pytest.raises(errors.ValueError, match="row 3, column 'a': it is missing"):
            kind(tmp_path / name)
        read = kind(tmp_path / name, errors="skip")
        assert read.skipped == 1 and read[1] == {"a": 2, "s": "y", "v": [2.0]}
        assert kind(tmp_path / name, columns=["s"])[2] == {"s": "z"}
        with pytest.raises(errors.IoError):
            kind(write(tmp_path, "bad", "nothing"))


# ---- Arrays, lines, images


def idx(array):
    code = {1: 0x08}[array.itemsize]
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    return head + array.tobytes()


def test_arrays(tmp_path):
    x, y = np.arange(12.0).reshape(4, 3), np.arange(4)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.save(tmp_path / "y.npy", y * 10)
    both = data.NumPyDataset(tmp_path / "a.npz", tmp_path / "y.npy")
    assert [v.tolist() for v in both[2]] == [[6, 7, 8], 2, 20] and len(both) == 4
    assert len(data.NumPyDataset(tmp_path / "a.npz", names=["y"])[1]) == 1
    with pytest.raises(errors.KeyError, match="no array 'z'"):
        data.NumPyDataset(tmp_path / "a.npz", names=["z"])
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    write(tmp_path, "images.gz", gzip.compress(idx(images)))
    write(tmp_path, "labels", idx(y.astype(np.uint8)))
    image, label = data.IDXDataset(tmp_path / "images.gz", tmp_path / "labels")[3]
    assert image.tolist() == images[3].tolist() and label == 3
    write(tmp_path, "cut", idx(images)[:-1])
    with pytest.raises(errors.IoError, match="too little data"):
        data.IDXDataset(tmp_path / "cut")


def test_cifar(tmp_path):
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 10, (3, 3073)).astype(np.uint8) for _ in range(6)]
    for part in parts:
        part[:, 0] %= 10
    for i, part in enumerate(parts[:5], 1):
        write(tmp_path, f"data_batch_{i}.bin", part.tobytes())
    write(tmp_path, "test_batch.bin", parts[5].tobytes())
    train, test = data.CIFAR10(tmp_path), data.CIFAR10(tmp_path, train=False, transform=lambda x: x / 2)
    assert len(train) == 15 and len(test) == 3
    image, label = train[4]
    assert image.numpy().tobytes() == parts[1][1, 1:].tobytes() and label == parts[1][1, 0]
    assert image.shape == (3, 32, 32) and test[0][0].dtype == kiln.float32
    record = np.zeros((2, 3074), np.uint8)
    record[:, :2] = [[19, 99], [3, 7]]
    write(tmp_path, "train.bin", record.tobytes())
    assert [data.CIFAR100(tmp_path)[i][1] for i in range(2)] == [99, 7]
    assert data.CIFAR100(tmp_path, coarse=True)[0][1] == 19
    parts[5][2, 0] = 11
    write(tmp_path, "test_batch.bin", parts[5].tobytes())
    with pytest.raises(errors.IoError, match="test_batch.bin', record 3: a bad label; got 11"):
        data.CIFAR10(tmp_path, train=False)
    write(tmp_path, "test_batch.bin", parts[5].tobytes()[:-1])
    with pytest.raises(errors.IoError, match="a multiple of 3073"):
        data.CIFAR10(tmp_path, train=False)
    with pytest.raises(errors.FileNotFoundError, match="test.bin"):
        data.CIFAR100(tmp_path, train=False)


def test_lines(tmp_path):
    first = write(tmp_path, "a.txt", "one\r\ntwé\n\n")
    second = write(tmp_path, "b.txt", b"x\nbad \xff\nlast")
    with pytest.raises(errors.ValueError, match="b.txt', row 2, byte 5: the text is not utf-8"):
        data.TextLinesDataset(first, second)
    lines = data.TextLinesDataset(first, second, errors="skip", transform=str.upper)
    assert [lines[i] for i in range(len(lines))] == ["ONE", "TWÉ", "", "X", "LAST"]
    assert lines.skipped == 1 and lines[-1] == "LAST"


def png(pixels, color=2, bits=8, size=None):
    """The bytes of a PNG: rows of samples, as they are; size: what it says of itself."""

    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    height, width = size or pixels.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(
        b"IEND", b"")  # fmt: skip


def test_images(tmp_path):
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (4, 5, 3)).astype(np.uint8)
    path = write(tmp_path, "a.png", png(pixels))
    read = kiln.vision.read_image(path)
    assert read.dtype == kiln.uint8
    np.testing.assert_array_equal(read.numpy(), pixels.transpose(2, 0, 1))
    np.testing.assert_array_equal(kiln.vision.decode_image(png(pixels)).numpy(), read.numpy())
    gray = rng.integers(0, 256, (4, 5)).astype(np.uint8)
    path = write(tmp_path, "g.png", png(gray, color=0))
    np.testing.assert_array_equal(kiln.vision.read_image(path, "GRAY").numpy(), gray[None])
    np.testing.assert_array_equal(kiln.vision.read_image(path).numpy(), np.stack([gray] * 3))
    for content, message in (
        (b"", "is no image"), (b"GIF89a..", "is no image"), (png(pixels)[:40], "no usable PNG"),
        (png(pixels, size=(60000, 60000)), "60000x60000 pixels in"),
        (png(pixels, size=(4000, 9)), "no usable PNG"),
    ):  # fmt: skip
        with pytest.raises(errors.IoError, match=message):
            kiln.vision.read_image(write(tmp_path, "bad.png", content))
        with pytest.raises(errors.IoError, match=message):
            kiln.vision.decode_image(content)
    with pytest.raises(errors.ValueError, match="RGB or GRAY"):
        kiln.vision.read_image(path, "CMYK")
    with pytest.raises(errors.IoError):
        kiln.vision.read_image(tmp_path / "none.png")


def test_image_folder(tmp_path):
    root = tmp_path / "images"
    for name, value in (("cat/b.png", 1), ("cat/a.PNG", 2), ("dog/in/c.png", 3), ("dog/d.txt", 4)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write(root, name, png(np.full((2, 2, 3), value, np.uint8)))
    folder = data.ImageFolder(root, target_transform=lambda t: t * 10)
    assert folder.classes == ["cat", "dog"] and folder.targets == [0, 0, 1]
    assert [(x[0, 0, 0].item(), t) for x, t in folder] == [(2, 0), (1, 0), (3, 10)]
    write(root, "cat/b.png", "no image")
    with pytest.raises(errors.IoError, match=r"cat/b\.png"):
        folder[1]
    folder = data.ImageFolder(root, transform=lambda x: x[0, 0, 0].item(), errors="skip")
    assert [folder[i] for i in range(3)] == [(2, 0), (3, 1), (3, 1)]
    assert folder.skipped == {str(root / "cat/b.png")}
    (root / "empty").mkdir()
    with pytest.raises(errors.ValueError, match="empty' has no images"):
        data.ImageFolder(root)
    with pytest.raises(errors.ValueError, match="has no folders"):
        data.ImageFolder(root / "empty")
    with pytest.raises(errors.FileNotFoundError):
        data.ImageFolder(root / "none")


# ---- Streams


def shard(path, samples):
    with tarfile.open(path, "w") as tar:
        for name, content in samples:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_shards(tmp_path):
    image = png(np.full((2, 2, 3), 7, np.uint8))
    samples = [(f"d/{i}.{kind}", content) for i in range(3) for kind, content in (
        ("png", image), ("cls", str(i).encode()), ("meta.json", b'{"a": 1}'), ("bin", b"\0"))]  # fmt: skip
    first = shard(tmp_path / "0.tar", samples)
    second = shard(tmp_path / "1.tar", [("x.txt", b"hello"), ("y.txt", b"bad \xff"), ("z.cls", b"9")])
    found = list(data.TarShards(first))
    assert [s["__key__"] for s in found] == ["d/0", "d/1", "d/2"]
    assert found[2]["cls"] == 2 and found[0]["meta.json"] == {"a": 1} and found[0]["bin"] == b"\0"
    assert found[0]["png"].unique().tolist() == [7]
    with pytest.raises(errors.IoError, match="1.tar', sample 'y', 'txt'"):
        list(data.TarShards(second))
    stream = data.TarShards(first, second, errors="skip")
    assert [s["__key__"] for s in stream] == ["d/0", "d/1", "d/2", "x", "z"] and stream.skipped == 1
    parts = [list(data.TarShards(first, second, errors="skip", rank=r, num_replicas=2)) for r in (0, 1)]
    assert [len(p) for p in parts] == [3, 2]

    cut = write(tmp_path, "cut.tar", first.read_bytes()[:5300])
    with pytest.raises(errors.IoError, match="cut.tar' is damaged at sample 'd/1'"):
        list(data.TarShards(cut))
    stream = data.TarShards(cut, first, errors="skip", decode=False, transform=lambda s: s["cls"])
    assert [s for s in stream][-3:] == [b"0", b"1", b"2"] and stream.skipped >= 1
    with pytest.raises(errors.IoError, match="at its beginning"):
        list(data.TarShards(write(tmp_path, "no.tar", b"x" * 2000)))
    loader = data.DataLoader(
        data.TarShards(first, first, decode=False, transform=lambda s: int(s["cls"])),
        batch_size=3, num_workers=2,
    )  # fmt: skip
    assert sorted(b.tolist() for b in loader) == [[0, 1, 2], [0, 1, 2]]


class Numbers(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_shuffle_buffer():
    stream = data.ShuffleBuffer(Numbers(50), 10, seed=3)
    first, second = list(stream), list(stream)
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
    assert all(value <= place + 10 for place, value in enumerate(first))
    stream.set_epoch(0)
    assert list(stream) == first
    assert list(data.ShuffleBuffer(Numbers(50), 10, seed=3)) == first
    assert list(data.ShuffleBuffer(Numbers(5), 1)) == [0, 1, 2, 3, 4]
    with pytest.raises(errors.ValueError, match="got 0"):
        data.ShuffleBuffer(Numbers(5), 0)


def test_mapped_and_windows():
    assert list(data.MapDataset(Numbers(3), lambda x: x * 2)) == [0, 2, 4]
    mapped = data.MapDataset(data.TensorDataset(kiln.arange(4)), lambda s: s[0].item() + 1)
    assert len(mapped) == 4 and mapped[3] == 4
    assert isinstance(data.MapDataset(Numbers(3), str), data.IterableDataset)
    assert list(pickle.loads(pickle.dumps(data.MapDataset(Numbers(2), str)))) == ["0", "1"]
    with pytest.raises(errors.TypeError):
        data.MapDataset(Numbers(3), 5)
    windows = data.WindowDataset(kiln.arange(10), 4, stride=2, horizon=1)
    assert len(windows) == 3
    assert [(x.tolist(), y.tolist()) for x, y in windows][2] == ([4, 5, 6, 7], [8])
    assert list(data.WindowDataset("abcd", 3)) == [["a", "b", "c"], ["b", "c", "d"]]
    assert len(data.WindowDataset("ab", 3)) == 0
    with pytest.raises(errors.ValueError, match="stride"):
        data.WindowDataset("abcd", 3, stride=0)


# ---- Splits


def test_splits():
    labels = [0] * 50 + [1] * 30 + [2] * 21
    dataset = list(range(101))
    parts = data.stratified_split(dataset, labels, [0.7, 0.2, 0.1])
    seen = [i for part in parts for i in part.indices]
    assert sorted(seen) == dataset
    for part, counts in zip(parts, ([35, 21, 15], [10, 6, 4], [5, 3, 2])):
        assert [collections.Counter(labels[i] for i in part.indices)[k] for k in range(3)] == counts
    again = data.stratified_split(dataset, kiln.tensor(labels), [0.7, 0.2, 0.1], kiln.Generator().manual_seed(1))
    other = data.stratified_split(dataset, labels, [0.7, 0.2, 0.1], kiln.Generator().manual_seed(1))
    assert again[0].indices == other[0].indices != parts[0].indices
    assert [len(p) for p in data.stratified_split(dataset, labels, [0.1, 0.1])] == [10, 10]
    for shuffle, by in ((False, None), (True, None), (True, labels)):
        folds = data.k_fold(dataset, 4, shuffle=shuffle, labels=by)
        assert sorted(i for _, valid in folds for i in valid.indices) == dataset
        assert sorted(len(valid) for _, valid in folds) == [25, 25, 25, 26]
        for train, valid in folds:
            assert sorted(train.indices + valid.indices) == dataset
            if by is not None:
                found = collections.Counter(labels[i] for i in valid.indices)
                assert all(abs(found[k] - labels.count(k) / 4) < 1 for k in range(3))
    assert data.k_fold(dataset, 4)[0][1].indices == list(range(26))
    for call in (
        lambda: data.k_fold(dataset, 1), lambda: data.stratified_split(dataset, labels, [0.9, 0.2]),
        lambda: data.k_fold(dataset, 3, labels=[1]),
    ):  # fmt: skip
        with pytest.raises(errors.ValueError):
            call()


def test_buckets_by_length():
    lengths = np.random.default_rng(4).integers(1, 100, 230)
    sampler = data.BucketBatchSampler(kiln.tensor(lengths), 8, buckets=10)
    batches = list(sampler)
    assert sorted(i for b in batches for i in b) == list(range(230))
    assert len(batches) == len(sampler) == 29
    padding = sum(len(b) * max(lengths[b]) - sum(lengths[b]) for b in batches)
    assert padding < 0.15 * sum(lengths)
    assert list(sampler) != batches
    dropped = data.BucketBatchSampler(lengths, 8, drop_last=True)
    assert len(list(dropped)) == len(dropped) == 28
    ordered = list(data.BucketBatchSampler(lengths, 8, shuffle=False))
    assert [lengths[i] for b in ordered for i in b] == sorted(lengths)
    loader = data.DataLoader(data.TensorDataset(kiln.tensor(lengths)), batch_sampler=sampler)
    assert sum(len(b[0]) for b in loader) == 230


def test_a_cache_on_disk(tmp_path):
    made = []

    def make(i):
        made.append(i)
        return kiln.full((2, 3), float(i)), {"number": i, "text": f"é{i}", "list": [1.5, True]}

    source = data.MapDataset(range(1500), make)
    cached = data.DiskCache(source, tmp_path / "cache", key="one")
    first = [cached[i] for i in (3, 1400, -1, 3)]
    assert made == [3, 1400, 1499]
    again = data.DiskCache(source, tmp_path / "cache", key="one")
    for a, i in zip(first, (3, 1400, 1499, 3)):
        x, more = again[i]
        assert kiln.equal(x, a[0]) and more == a[1] == {"number": i, "text": f"é{i}", "list": [1.5, True]}
    assert made == [3, 1400, 1499] and len(again) == 1500
    loader = data.DataLoader(data.Subset(again, range(8)), batch_size=4, num_workers=2)
    assert [more["number"].tolist() for _, more in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    made.clear()
    assert again[5][1]["number"] == 5 and made == []  # a worker's process made it
    path = next((tmp_path / "cache").glob("*/000001400.pt"))
    path.write_bytes(path.read_bytes()[:50])
    assert again[1400][1]["number"] == 1400 and made == [1400] and cached[1400] and made == [1400]
    for call, message in (
        (lambda: data.DiskCache(source, tmp_path / "cache", key="two"), "of other samples"),
        (lambda: data.DiskCache(range(3), tmp_path / "cache", key="one"), "of other samples"),
        (lambda: data.DiskCache(source, tmp_path), "holds something else"),
    ):
        with pytest.raises(errors.ValueError, match=message):
            call()
    with pytest.raises(errors.IndexError, match="out of range"):
        cached[1500]
