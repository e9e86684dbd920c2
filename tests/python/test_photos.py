"""Batches of photographs: decoded, cut, resized and scaled at once by C++, and equal to one after another."""

import io
import random

import numpy as np
import pytest

import kiln
from kiln import errors
from kiln.utils import data
from kiln.vision import transforms as T

FLOATS = [T.ToDtype(kiln.float32, scale=True)]
NORMAL = [*FLOATS, T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
CHAINS = {
    "random part": [T.RandomResizedCrop(40), T.RandomHorizontalFlip(), *NORMAL],
    "random part as bytes": [T.RandomResizedCrop((30, 50), scale=(0.02, 0.3)), T.RandomVerticalFlip()],
    "both flips": [T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.RandomVerticalFlip(0.9), *FLOATS],
    "middle": [T.Resize(48), T.CenterCrop((40, 32)), *NORMAL],
    "whole": [T.Resize((33, 65)), *FLOATS],
    "larger": [T.Resize((200, 300)), *FLOATS],
}
Image = pytest.importorskip("PIL.Image")
if "jpeg" not in kiln.vision._vision._image_formats():
    pytest.skip("this build reads no JPEG", allow_module_level=True)


def photograph(rng, rows, columns, kind, **options):
    y, x = np.mgrid[0:rows, 0:columns]
    waves = [np.sin(x / a + c) * np.cos(y / b) for a, b, c in rng.uniform(3, 20, (3, 3))]
    noise = rng.normal(0, 20, (rows, columns, 3))
    pixels = (np.stack(waves, -1) * 90 + 128 + noise).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    mode = options.pop("mode", "RGB")
    Image.fromarray(pixels).convert(mode).save(out, kind, **options)
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """JPEGs of every kind of sampling and of odd sizes, a gray one, a progressive one, a PNG."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(3)
    for name in "ab":
        (root / name).mkdir()
    files = [
        ("a", "0.jpg", photograph(rng, 97, 131, "JPEG", quality=90)),
        ("a", "1.jpg", photograph(rng, 80, 64, "JPEG", subsampling=0)),
        ("a", "2.jpg", photograph(rng, 123, 77, "JPEG", subsampling=1)),
        ("a", "3.jpg", photograph(rng, 150, 99, "JPEG", progressive=True)),
        ("b", "4.jpg", photograph(rng, 75, 75, "JPEG", mode="L")),
        ("b", "5.png", photograph(rng, 61, 90, "PNG")),
        ("b", "6.jpg", photograph(rng, 88, 140, "JPEG", mode="CMYK")),
        ("b", "7.jpg", photograph(rng, 211, 203, "JPEG", quality=30, restart_marker_blocks=3)),
    ]
    for place, name, content in files:
        (root / place / name).write_bytes(content)
    return root


def one_by_one(dataset, indices):
    return data.default_collate([dataset[i] for i in indices])


@pytest.mark.parametrize("chain", CHAINS)
def test_a_batch_is_its_samples(folder, chain):
    dataset = data.ImageFolder(folder, transform=T.Compose(CHAINS[chain]))
    order = [7, 0, 3, 3, 5, 1, 2, 6, 4, 0]
    for seed in range(5):
        kiln.manual_seed(seed)
        images, targets = dataset._gathered(order)
        after = kiln.rand(1).item()
        kiln.manual_seed(seed)
        expected, expected_targets = one_by_one(dataset, order)
        assert kiln.rand(1).item() == after  # as many random numbers were drawn
        assert images.dtype == expected.dtype and images.shape == expected.shape
        assert kiln.equal(targets, expected_targets) and targets.dtype == expected_targets.dtype
        step = 1 if images.dtype == kiln.uint8 else 1 / 255 / (0.224 if "Normalize" in repr(dataset.transform) else 1)
        apart = (images.to(kiln.float32) - expected.to(kiln.float32)).abs()
        assert apart.max().item() < 1.01 * step  # a byte that lay in the middle was rounded the other way
        assert (apart > 1e-6).to(kiln.float32).mean().item() < 1e-3


def test_against_pillow(folder):
    """An expectation that shares no code with ours."""
    dataset = data.ImageFolder(folder, transform=T.Compose([T.Resize((50, 40))]))
    images, _ = dataset._gathered([0, 1, 2, 3, 5, 7])
    for got, index in zip(images, (0, 1, 2, 3, 5, 7)):
        with Image.open(dataset.samples[index][0]) as file:
            expected = np.asarray(file.convert("RGB").resize((40, 50), Image.Resampling.BILINEAR))
        apart = np.abs(got.numpy().transpose(1, 2, 0).astype(int) - expected)
        assert apart.max() <= 2 and apart.mean() < 0.3


def test_through_the_loader(folder):
    dataset = data.ImageFolder(folder, transform=T.Compose(CHAINS["middle"]))
    loaders = [
        data.DataLoader(dataset, batch_size=3, num_workers=workers) for workers in (0, 2)
    ] + [data.DataLoader(dataset, batch_size=3, collate_fn=lambda batch: data.default_collate(batch))]
    assert [loader._may_thread() for loader in loaders] == [True, True, False]
    first, second, plain = [list(loader) for loader in loaders]
    for a, b, c in zip(first, second, plain):
        assert kiln.equal(a[0], b[0]) and kiln.equal(a[1], b[1])
        assert kiln.equal(a[1], c[1]) and (a[0] - c[0]).abs().max().item() < 0.02
    part = data.Subset(dataset, [5, 6])
    assert kiln.equal(next(iter(data.DataLoader(part, batch_size=2)))[1], kiln.tensor([1, 1]))


@pytest.mark.parametrize("chain", ["random part", "both flips", "middle"])
def test_threads_give_the_batches_of_processes(folder, chain):
    dataset = data.ImageFolder(folder, transform=T.Compose(CHAINS[chain]))
    for source in (dataset, data.Subset(dataset, [6, 1, 1, 4, 2, 0, 7])):
        epochs = []
        for options in ({}, {"multiprocessing_context": "fork"}):
            kiln.manual_seed(11)
            loader = data.DataLoader(source, batch_size=2, shuffle=True, num_workers=3, **options)
            epochs.append([batch for _ in range(2) for batch in loader])
            epochs[-1].append([kiln.rand(3)])
        for a, b in zip(*epochs, strict=True):
            assert all(kiln.equal(x, y) for x, y in zip(a, b, strict=True))


def test_a_loop_that_is_left_early(folder):
    dataset = data.ImageFolder(folder, transform=T.Compose(CHAINS["whole"]))
    loader = data.DataLoader(dataset, batch_size=1, num_workers=2)
    for _ in range(20):
        for images, _ in loader:
            break
    assert len(list(loader)) == 8
    padded = data.ImageFolder(folder, transform=T.Compose([T.Resize(20), T.CenterCrop(30)]))
    assert len(list(data.DataLoader(padded, batch_size=3, num_workers=2))) == 3


@pytest.mark.parametrize("make", [
    lambda: T.Compose([T.RandomResizedCrop(8), T.ColorJitter(0.5)]),
    lambda: T.Compose([T.Resize(8, interpolation="nearest"), T.CenterCrop(4)]),
    lambda: T.Compose([T.Resize(8, antialias=False), T.CenterCrop(4)]),
    lambda: T.Compose([T.Resize((8, 8)), T.ToDtype(kiln.float64, scale=True)]),
    lambda: T.Compose([T.Resize((8, 8)), T.ToDtype(kiln.float32)]),
    lambda: T.Compose([T.RandomHorizontalFlip(), T.Resize((8, 8))]),
    lambda: T.Lambda(lambda x: x[:, :4, :4]),
    lambda: type("Other", (T.Resize,), {})((8, 8)),
])  # fmt: skip
def test_other_chains_are_applied_one_by_one(folder, make):
    dataset = data.ImageFolder(folder, transform=make())
    assert dataset._gathered([0, 1]) is None
    kiln.manual_seed(1)
    got = next(iter(data.DataLoader(dataset, batch_size=2)))
    kiln.manual_seed(1)
    assert kiln.equal(got[0], one_by_one(dataset, [0, 1])[0])


def test_what_is_padded_is_done_one_by_one(folder):
    dataset = data.ImageFolder(folder, transform=T.Compose([T.Resize(20), T.CenterCrop(30)]))
    assert dataset._gathered([0, 1]) is None
    assert next(iter(data.DataLoader(dataset, batch_size=2)))[0].shape == (2, 3, 30, 30)


def damaged(folder, root, cut):
    """A copy of the folder in which 0.jpg is cut short, 1.jpg is no image, and 5.png has lost its end."""
    for path in sorted(folder.glob("*/*")):
        place = root / path.parent.name
        place.mkdir(exist_ok=True)
        (place / path.name).write_bytes(path.read_bytes())
    whole = (root / "a" / "0.jpg").read_bytes()
    (root / "a" / "0.jpg").write_bytes(whole[: int(cut * len(whole))])
    (root / "a" / "1.jpg").write_bytes(b"no image")
    png = (root / "b" / "5.png").read_bytes()
    (root / "b" / "5.png").write_bytes(png[: len(png) // 2])
    return root


@pytest.mark.parametrize("cut", [0.3, 0.97])
def test_damaged_files(folder, tmp_path, cut):
    """A file that is cut short is damaged even where the part that is asked for is whole."""
    root = damaged(folder, tmp_path, cut)
    top = T.Compose([T.Resize(48), T.CenterCrop(4), *FLOATS])
    for chain in (T.Compose(CHAINS["random part"]), top):
        for index in (0, 1, 5):
            strict = data.ImageFolder(root, transform=chain)
            with pytest.raises(errors.IoError, match=strict.samples[index][0]):
                strict._gathered([2, index])
            with pytest.raises(errors.IoError, match=strict.samples[index][0]):
                next(iter(data.DataLoader(strict, batch_size=1, sampler=[index])))
        lenient = data.ImageFolder(root, transform=chain, errors="skip")
        kiln.manual_seed(1)
        images, targets = lenient._gathered(list(range(8)))
        again = data.ImageFolder(root, transform=chain, errors="skip")
        kiln.manual_seed(1)
        expected, expected_targets = one_by_one(again, list(range(8)))
        assert kiln.equal(targets, expected_targets)
        assert (images - expected).abs().max().item() < 0.02
        assert lenient.skipped == again.skipped and len(lenient.skipped) == 3


def test_all_files_are_damaged(tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(2):
        (tmp_path / "a" / f"{i}.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    dataset = data.ImageFolder(tmp_path, transform=T.Compose(CHAINS["whole"]), errors="skip")
    with pytest.raises(errors.IoError, match="no image that can be read"):
        next(iter(data.DataLoader(dataset, batch_size=2)))


def test_parts_that_are_impossible(folder):
    path = str(folder / "a" / "0.jpg")
    read = lambda part, **o: kiln._C._data.PhotoBatch([path]).read([part], kiln.uint8, [0] * 3, [1] * 3, False)
    assert read((0, 0, 97, 131, 9, 9, 0, 0, 9, 9, 0, 0)).shape == (1, 3, 9, 9)
    for part, message in (
        ((0, 0, 98, 131, 9, 9, 0, 0, 9, 9, 0, 0), "lies outside"),
        ((-1, 0, 9, 9, 9, 9, 0, 0, 9, 9, 0, 0), "lies outside"),
        ((0, 131, 9, 1, 9, 9, 0, 0, 9, 9, 0, 0), "lies outside"),
        ((0, 0, 9, 9, 9, 9, 1, 0, 9, 9, 0, 0), "window"),
        ((0, 0, 9, 9, 2**40, 2**40, 0, 0, 9, 9, 0, 0), "pixels"),
        ((0, 0, 9), "12 numbers"),
    ):
        with pytest.raises(errors.ValueError, match=message):
            read(part)


def test_every_place_of_a_small_picture(tmp_path):
    """Each part of a JPEG is what decoding all of it gives there."""
    (tmp_path / "a").mkdir()
    rng = np.random.default_rng(0)
    for sampling in (0, 1, 2):
        path = tmp_path / "a" / f"{sampling}.jpg"
        path.write_bytes(photograph(rng, 50, 67, "JPEG", subsampling=sampling))
        whole = kiln.vision.read_image(str(path))
        chance = random.Random(sampling)
        for _ in range(300):
            rows, columns = chance.randint(1, 50), chance.randint(1, 67)
            top, left = chance.randint(0, 50 - rows), chance.randint(0, 67 - columns)
            part = (top, left, rows, columns, rows, columns, 0, 0, rows, columns, 0, 0)
            got = kiln._C._data.PhotoBatch([str(path)]).read([part], kiln.uint8, [0] * 3, [1] * 3, False)
            assert kiln.equal(got[0], whole[:, top : top + rows, left : left + columns]), part
