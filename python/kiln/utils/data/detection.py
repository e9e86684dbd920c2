"""COCO's form of detection data: images, boxes, masks."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from ... import _C
from ... import errors as kiln_errors
from .dataset import Dataset
from .tables import check_policy, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._C import Tensor
    from ..._typing import StrPath

__all__ = ["COCODetection", "collate_detections"]

_SCALE = 5  # polygons are followed in fifths of a pixel, as COCO's own code does


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _polygon_changes(points, height, width):
    """Where, counted down the columns, pixels begin or cease to lie in a polygon: COCO's rleFrPoly."""
    x = [int(_SCALE * v + 0.5) for v in points[0::2]]
    y = [int(_SCALE * v + 0.5) for v in points[1::2]]
    u, v = [], []
    for j in range(len(x)):
        xs, ys, xe, ye = x[j], y[j], x[(j + 1) % len(x)], y[(j + 1) % len(x)]
        dx, dy = abs(xe - xs), abs(ye - ys)
        flip = (dx >= dy and xs > xe) or (dx < dy and ys > ye)
        if flip:
            xs, ys, xe, ye = xe, ye, xs, ys
        if dx >= dy:
            slope = (ye - ys) / dx if dx else 0.0
            steps = range(dx, -1, -1) if flip else range(dx + 1)
            u += [t + xs for t in steps]
            v += [int(ys + slope * t + 0.5) for t in steps]
        else:
            slope = (xe - xs) / dy
            steps = range(dy, -1, -1) if flip else range(dy + 1)
            v += [t + ys for t in steps]
            u += [int(xs + slope * t + 0.5) for t in steps]
    changes = []
    for j in range(1, len(u)):
        if u[j] == u[j - 1]:
            continue
        column = ((u[j] if u[j] < u[j - 1] else u[j] - 1) + 0.5) / _SCALE - 0.5
        if math.floor(column) != column or column < 0 or column > width - 1:
            continue
        row = (min(v[j], v[j - 1]) + 0.5) / _SCALE - 0.5
        changes.append(int(column) * height + math.ceil(min(max(row, 0), height)))
    return sorted(changes)


def _unpacked(text):
    """The counts of COCO's compressed run lengths."""
    counts, at = [], 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            if at == len(text) or not 48 <= ord(text[at]) < 112 or shift > 60:
                raise ValueError
            code = ord(text[at]) - 48
            value |= (code & 0x1F) << shift
            more = bool(code & 0x20)
            at += 1
            shift += 5
            if not more and code & 0x10:
                value |= -1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts


class _Wrong(Exception):
    """What is wrong with an entry: its field, and what was expected."""

    def __init__(self, field, text):
        super().__init__(field, text)
        self.field, self.text = field, text


def _changes(segmentation, height, width):
    """A list of lists: where pixels change between outside and inside, for each part."""
    if isinstance(segmentation, list):
        parts = []
        for points in segmentation:
            good = isinstance(points, list) and len(points) >= 6 and len(points) % 2 == 0
            if not good or not all(map(_is_number, points)):
                raise _Wrong("segmentation", "expected polygons [x, y, x, y, x, y, ..]")
            if any(not -w <= p <= 2 * w for p, w in zip(points, (width, height) * len(points))):
                raise _Wrong("segmentation", "a point lies far outside of the image")
            parts.append(_polygon_changes(points, height, width))
        return parts
    counts = segmentation.get("counts") if isinstance(segmentation, dict) else None
    if segmentation is None or counts is None or segmentation.get("size") != [height, width]:
        raise _Wrong(
            "segmentation",
            f"expected polygons, or run lengths of size [{height}, {width}], which the image has",
        )
    if isinstance(counts, str):
        try:
            counts = _unpacked(counts)
        except ValueError:
            raise _Wrong("segmentation", "the packed run lengths are malformed") from None
    good = isinstance(counts, list) and all(_is_whole(c) and c >= 0 for c in counts)
    if not good or sum(counts) != height * width:
        raise _Wrong("segmentation", f"expected run lengths that add up to {height * width}")
    ends, at = [], 0
    for count in counts:
        at += count
        ends.append(at)
    return [ends[:-1]]


def _mask(segmentation, height, width):
    """bool [H, W]: what lies in any of the parts."""
    cells = bytearray(height * width)
    for changes in _changes(segmentation, height, width):
        for begin, end in zip(changes[0::2], changes[1::2] + [height * width]):
            cells[begin:end] = b"\1" * (end - begin)
    return _C.frombuffer(cells, dtype=_C.uint8).reshape(width, height).t().to(_C.bool_)


class COCODetection(Dataset[Any]):
    """Images with boxes in COCO's form: (image, target).

    root: the folder of the images; annotations: COCO's JSON. image: uint8 [3, H, W]. target: a dict of
    boxes float32 [N, 4] (left, top, right, bottom in pixels), labels int64 [N] (places in `classes`, by
    the categories' ids), area float32 [N], iscrowd int64 [N], image_id, and with masks=True masks bool
    [N, H, W] from polygons or run lengths.

    transform: gets image and target and returns both. An entry that is wrong is a ValueError that names
    the file, the entry and its field. errors="skip": such entries are left out and counted in skipped;
    in the place of an image that cannot be read comes the next one that can, and skipped_images has it.

    >>> import json
    >>> annotations = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    >>> with open("boxes.json", "w") as file:
    ...     json.dump(annotations, file)
    >>> len(kiln.utils.data.COCODetection(".", "boxes.json"))
    0
    """

    def __init__(
        self,
        root: StrPath,
        annotations: StrPath,
        transform: Callable[[Tensor, dict[str, Any]], Any] | None = None,
        masks: bool = False,
        loader: Callable[[str], Any] | None = None,
        errors: str = "raise",
    ) -> None:
        op = "COCODetection"
        check_policy(op, errors)
        self.root, self.annotations = os.fspath(root), os.fspath(annotations)
        self.transform, self.masks, self.errors = transform, masks, errors
        self.loader = _C._vision.read_image if loader is None else loader
        self.skipped = 0
        self.skipped_images: set[str] = set()
        with open(file_name(op, annotations), "rb") as file:
            try:
                data = json.load(file)
            except (ValueError, RecursionError) as e:
                raise kiln_errors.ValueError(f"{op}: {self.annotations!r} is no JSON: {e}") from None
        for name in ("images", "annotations", "categories"):
            if not isinstance(data, dict) or not isinstance(data.get(name), list):
                raise kiln_errors.ValueError(
                    f"{op}: {self.annotations!r}: {name}: expected a list of objects"
                )
        self._label_of = self._read_categories(data["categories"])
        self.images: list[dict[str, Any]] = []
        self._boxes: list[list[Any]] = []
        place = self._read_images(data["images"])
        for i, entry in enumerate(data["annotations"]):
            self._checked(f"annotations[{i}]", lambda e=entry, n=i: self._take_box(e, n, place))
        self.ids = [image["id"] for image in self.images]

    def _checked(self, where, take):
        try:
            take()
        except _Wrong as e:
            if self.errors == "raise":
                raise kiln_errors.ValueError(
                    f"COCODetection: {self.annotations!r}, {where}: {e.field}: {e.text}"
                ) from None
            self.skipped += 1

    def _read_categories(self, entries):
        found = {}

        def take(entry):
            if not isinstance(entry, dict) or not _is_whole(entry.get("id")):
                raise _Wrong("id", "expected a whole number")
            if not isinstance(entry.get("name"), str):
                raise _Wrong("name", "expected a text")
            if entry["id"] in found:
                raise _Wrong("id", f"{entry['id']} stands there twice")
            found[entry["id"]] = entry["name"]

        for i, entry in enumerate(entries):
            self._checked(f"categories[{i}]", lambda e=entry: take(e))
        self.category_ids = sorted(found)
        self.classes = [found[i] for i in self.category_ids]
        return {number: label for label, number in enumerate(self.category_ids)}

    def _read_images(self, entries):
        place = {}

        def take(entry):
            if not isinstance(entry, dict) or not _is_whole(entry.get("id")):
                raise _Wrong("id", "expected a whole number")
            name = entry.get("file_name")
            if not isinstance(name, str) or not name:
                raise _Wrong("file_name", "expected a text")
            if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
                raise _Wrong("file_name", f"expected a file below the images' folder; got {name!r}")
            if entry["id"] in place:
                raise _Wrong("id", f"{entry['id']} stands there twice")
            place[entry["id"]] = len(self.images)
            self.images.append({"id": entry["id"], "file_name": name})
            self._boxes.append([])

        for i, entry in enumerate(entries):
            self._checked(f"images[{i}]", lambda e=entry: take(e))
        return place

    def _take_box(self, entry, number, place):
        if not isinstance(entry, dict) or entry.get("image_id") not in place:
            raise _Wrong("image_id", "expected the id of one of the images")
        if entry.get("category_id") not in self._label_of:
            raise _Wrong("category_id", "expected the id of one of the categories")
        box = entry.get("bbox")
        good = isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))
        if not good or box[2] < 0 or box[3] < 0:
            raise _Wrong("bbox", f"expected [x, y, width, height], none below 0; got {box!r:.60}")
        area = entry.get("area", box[2] * box[3])
        if not _is_number(area):
            raise _Wrong("area", "expected a number")
        if entry.get("iscrowd", 0) not in (0, 1):
            raise _Wrong("iscrowd", "expected 0 or 1")
        self._boxes[place[entry["image_id"]]].append((
            [box[0], box[1], box[0] + box[2], box[1] + box[3]], self._label_of[entry["category_id"]],
            area, int(entry.get("iscrowd", 0)), number, entry.get("segmentation") if self.masks else None,
        ))  # fmt: skip

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise kiln_errors.IndexError(
                f"COCODetection: index {index} is out of range for {len(self)} images"
            )
        for step in range(len(self)):
            at = (index + step) % len(self)
            path = os.path.join(self.root, self.images[at]["file_name"])
            try:
                image = self.loader(path)
                break
            except (kiln_errors.Error, OSError):
                if self.errors == "raise":
                    raise
                self.skipped_images.add(path)
        else:
            raise kiln_errors.IoError(f"COCODetection: {self.root!r} has no image that can be read")
        target = self._target(at, image.shape[-2], image.shape[-1])
        return (image, target) if self.transform is None else self.transform(image, target)

    def _target(self, at, height, width):
        kept, masks = [], []
        for box in self._boxes[at]:
            if self.masks:
                before = self.skipped
                self._checked(
                    f"annotations[{box[4]}]",
                    lambda b=box: masks.append(_mask(b[5], height, width)),
                )
                if self.skipped != before:
                    continue
            kept.append(box)
        target = {
            "image_id": self.images[at]["id"],
            "boxes": _C.tensor([b[0] for b in kept], dtype=_C.float32).reshape(-1, 4),
            "labels": _C.tensor([b[1] for b in kept], dtype=_C.int64),
            "area": _C.tensor([b[2] for b in kept], dtype=_C.float32),
            "iscrowd": _C.tensor([b[3] for b in kept], dtype=_C.int64),
        }
        if self.masks:
            target["masks"] = (
                _C.stack(masks) if masks else _C.zeros((0, height, width), dtype=_C.bool_)
            )
        return target


def collate_detections(samples: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A batch of (image, target): images as one tensor [B, C, H, W] where their sizes are equal, else as
    a list, and the list of targets, since images have boxes of different numbers.

    >>> samples = [(kiln.zeros(3, 4, 4), {}), (kiln.zeros(3, 4, 4), {})]
    >>> images, targets = kiln.utils.data.collate_detections(samples)
    >>> images.shape, targets
    (kiln.Size([2, 3, 4, 4]), [{}, {}])
    """
    images: Any = [image for image, _ in samples]
    if all(image.shape == images[0].shape for image in images):
        images = _C.stack(images)
    return images, [target for _, target in samples]
