"""COCO's form of boxes and masks, beside pycocotools, and what is said of entries that are wrong."""

import json
import struct
import zlib

import numpy as np
import pytest

import kiln
from kiln import errors
from kiln.utils import data
from kiln.utils.data import detection

HEIGHT, WIDTH = 40, 30


def png(pixels):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = pixels.shape[:2]
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def annotations():
    box = {"image_id": 7, "category_id": 3, "bbox": [2, 3.5, 10, 4], "area": 40, "iscrowd": 0}
    square = [[5, 5, 15, 5, 15, 20, 5, 20]]
    runs = {"size": [HEIGHT, WIDTH], "counts": [10, 30, HEIGHT * WIDTH - 40]}
    return {
        "images": [{"id": 7, "file_name": "a.png"}, {"id": 2, "file_name": "in/b.png"}],
        "annotations": [
            {"id": 1, "segmentation": square, **box},
            {"id": 2, "segmentation": runs, **box, "category_id": 1, "iscrowd": 1},
        ],
        "categories": [{"id": 3, "name": "dog"}, {"id": 1, "name": "cat"}],
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for i, name in enumerate(("a.png", "in/b.png")):
        (tmp_path / name).write_bytes(png(np.full((HEIGHT, WIDTH, 3), i, np.uint8)))
    return tmp_path


def opened(folder, content, **options):
    path = folder / "boxes.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return data.COCODetection(folder, path, **options)


def test_samples_and_batches(folder):
    found = opened(folder, annotations(), masks=True)
    assert len(found) == 2 and found.classes == ["cat", "dog"] and found.category_ids == [1, 3]
    image, target = found[0]
    assert image.shape == (3, HEIGHT, WIDTH) and target["image_id"] == 7
    assert target["boxes"].tolist() == [[2, 3.5, 12, 7.5]] * 2 and target["boxes"].dtype == kiln.float32
    assert target["labels"].tolist() == [1, 0] and target["iscrowd"].tolist() == [0, 1]
    assert target["area"].tolist() == [40, 40]
    mask = target["masks"].numpy()
    assert mask.dtype == bool and mask.shape == (2, HEIGHT, WIDTH)
    assert mask[0].sum() == 150 and mask[0][5:20, 5:15].all()
    assert mask[1].sum() == 30 and mask[1][10:, 0].all()
    empty = found[1][1]
    assert empty["boxes"].shape == (0, 4) and empty["masks"].shape == (0, HEIGHT, WIDTH)
    assert "masks" not in opened(folder, annotations())[0][1]
    flipped = opened(folder, annotations(), transform=lambda x, t: (x.flip(2), t["labels"]))
    assert flipped[0][1].tolist() == [1, 0]

    loader = data.DataLoader(found, batch_size=2, collate_fn=data.collate_detections, num_workers=1)
    images, targets = next(iter(loader))
    assert images.shape == (2, 3, HEIGHT, WIDTH) and [len(t["labels"]) for t in targets] == [2, 0]
    mixed = data.collate_detections([(kiln.ones(3, 2, 2), {}), (kiln.ones(3, 4, 2), {})])
    assert [x.shape for x in mixed[0]] == [(3, 2, 2), (3, 4, 2)]


def test_masks_equal_pycocotools():
    mask = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(0)
    for _ in range(300):
        height, width = (int(n) for n in rng.integers(1, 60, 2))
        parts = []
        for _ in range(rng.integers(1, 4)):
            points = rng.uniform(-0.5, 1.5, 2 * rng.integers(3, 9)) * np.tile((width, height), 1)[0]
            points = points.clip(-min(width, height), 2 * min(width, height))
            parts.append([float(p) for p in (points.round() if rng.random() < 0.3 else points)])
        expected = mask.decode(mask.merge(mask.frPyObjects(parts, height, width))).astype(bool)
        np.testing.assert_array_equal(detection._mask(parts, height, width).numpy(), expected)
        packed = mask.encode(np.asfortranarray(expected.astype(np.uint8)))
        runs = {"size": [height, width], "counts": packed["counts"].decode()}
        np.testing.assert_array_equal(detection._mask(runs, height, width).numpy(), expected)


BAD = [
    (("annotations", 0, "bbox"), [1, 2, -1, 4], "annotations[0]: bbox: expected [x, y, width, height]"),
    (("annotations", 1, "bbox"), [1, 2, 3], "annotations[1]: bbox"),
    (("annotations", 1, "bbox"), [1, 2, 3, float("nan")], "annotations[1]: bbox"),
    (("annotations", 0, "image_id"), 8, "annotations[0]: image_id: expected the id of one of the images"),
    (("annotations", 0, "category_id"), 2, "annotations[0]: category_id"),
    (("annotations", 0, "area"), "x", "annotations[0]: area: expected a number"),
    (("annotations", 0, "iscrowd"), 2, "annotations[0]: iscrowd"),
    (("annotations", 0), 3, "annotations[0]: image_id"),
    (("images", 1, "id"), 7, "images[1]: id: 7 stands there twice"),
    (("images", 1, "file_name"), "../b.png", "images[1]: file_name: expected a file below"),
    (("categories", 0, "name"), None, "categories[0]: name: expected a text"),
]


@pytest.mark.parametrize("place, value, message", BAD)
def test_entries_that_are_wrong(folder, place, value, message):
    content = annotations()
    at = content
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(errors.ValueError) as caught:
        opened(folder, content)
    assert str(caught.value).startswith(f"COCODetection: {str(folder / 'boxes.json')!r}, {message}")
    found = opened(folder, content, errors="skip")
    assert found.skipped >= 1
    for i in range(len(found)):
        found[i]


BAD_MASKS = [
    [[1, 2, 3, 4]], [[1, 2, 3, 4, 5]], [[0, 0, 1e9, 0, 0, 5]], [["a"] * 6], "x", None,
    {"size": [HEIGHT, WIDTH], "counts": [5]}, {"size": [3, 3], "counts": [9]},
    {"size": [HEIGHT, WIDTH], "counts": "~~~"}, {"size": [HEIGHT, WIDTH], "counts": [-1, 1201]},
    {"size": [HEIGHT, WIDTH], "counts": "o" * 50},
]  # fmt: skip


@pytest.mark.parametrize("segmentation", BAD_MASKS)
def test_masks_that_are_wrong(folder, segmentation):
    content = annotations()
    content["annotations"][1]["segmentation"] = segmentation
    found = opened(folder, content, masks=True)
    with pytest.raises(errors.ValueError, match=r"annotations\[1\]: segmentation: "):
        found[0]
    target = opened(folder, content, masks=True, errors="skip")[0][1]
    assert target["masks"].shape == (1, HEIGHT, WIDTH) and target["labels"].tolist() == [1]


def test_files_that_are_wrong(folder):
    for content in ("", "[", "[1]", '{"images": []}', "[" * 100000, json.dumps({"images": {}})):
        with pytest.raises(errors.ValueError, match="boxes.json"):
            opened(folder, content)
    with pytest.raises(errors.FileNotFoundError):
        data.COCODetection(folder, folder / "none.json")
    (folder / "a.png").write_bytes(b"no image")
    with pytest.raises(errors.IoError, match=r"a\.png"):
        opened(folder, annotations())[0]
    found = opened(folder, annotations(), errors="skip")
    assert found[0][1]["image_id"] == 2 and found.skipped_images == {str(folder / "a.png")}
    with pytest.raises(IndexError):
        found[2]
