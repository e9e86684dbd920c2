"""kiln.vision.transforms: what torchvision recorded, what chance may do, and what is refused."""

import json
import pathlib
import pickle

import numpy as np
import pytest

import kiln
from kiln import errors
from kiln.utils import data
from kiln.vision import transforms
from kiln.vision.transforms import functional as F
from transforms_cases import BOTH, BYTES, IMAGE, LARGE

RECORDED = json.loads((pathlib.Path(__file__).parent / "transforms_reference.json").read_text())
IMAGES = {
    "uint8": kiln.tensor(IMAGE),
    "float32": kiln.tensor(IMAGE.astype(np.float32) / 255),
    "bytes": kiln.tensor(IMAGE),
}


def near(out, recorded, most=0):
    shape, values = recorded
    assert list(out.shape) == shape
    found = out.numpy().reshape(-1).astype(np.float64)
    if out.dtype == kiln.uint8:
        # A value on the edge between two bytes may fall to either.
        off = np.abs(found - values)
        assert off.max() <= 1 and (off > 0).mean() <= most, (off > 0).mean()
    else:
        np.testing.assert_allclose(found, values, atol=2e-5)


@pytest.mark.parametrize("kind", ["uint8", "float32", "bytes"])
def test_as_torchvision(kind):
    for case, recorded in zip(BYTES if kind == "bytes" else BOTH, RECORDED[kind], strict=True):
        name, arguments, options = case
        out = getattr(F, name)(IMAGES[kind], *arguments, **options)
        assert out.dtype == IMAGES[kind].dtype
        try:
            near(out, recorded, 0.05)
        except AssertionError as e:
            raise AssertionError(f"{case}: {e}") from None


def test_equalize_of_more_pixels():
    near(F.equalize(kiln.tensor(LARGE)), RECORDED["equalized"])


def test_batches_are_images_each():
    batch = kiln.stack([IMAGES["uint8"], F.hflip(IMAGES["uint8"])])
    for name, arguments, options in BOTH + BYTES:
        if name == "erase":
            continue
        both = getattr(F, name)(batch, *arguments, **options)
        assert both[0].equal(getattr(F, name)(batch[0], *arguments, **options)), name


def test_dtypes_and_normalize():
    x = IMAGES["uint8"]
    assert F.convert_image_dtype(F.convert_image_dtype(x), kiln.uint8).equal(x)
    wide = transforms.ToDtype(kiln.float32, scale=True)(x)
    np.testing.assert_array_equal(wide.numpy(), IMAGE.astype(np.float32) / 255)
    out = transforms.Normalize([0.1, 0.2, 0.3], [0.5, 1, 2])(wide)
    expected = (wide.numpy() - np.reshape([0.1, 0.2, 0.3], (3, 1, 1))) / np.reshape([0.5, 1, 2], (3, 1, 1))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)


RANDOM = [
    transforms.RandomCrop(4, padding=1), transforms.RandomResizedCrop(5),
    transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(0.3),
    transforms.RandomGrayscale(0.5), transforms.GaussianBlur(3), transforms.RandomRotation(40),
    transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomErasing(1.0),
    transforms.RandomErasing(1.0, value="random"), transforms.RandAugment(3, 20),
    transforms.RandomAffine(10, (0.2, 0.2), (0.8, 1.2), 5),
    transforms.RandomApply([transforms.Grayscale(3)]),
    transforms.RandomChoice([transforms.Pad(1), transforms.CenterCrop(3)], p=[0.3, 0.7]),
]  # fmt: skip


@pytest.mark.parametrize("transform", RANDOM, ids=lambda t: type(t).__name__)
def test_chance_is_the_generators(transform):
    def run(image, seed):
        kiln.manual_seed(seed)
        return [transform(image) for _ in range(6)]

    for kind in ("uint8", "float32"):
        image = IMAGES[kind]
        before = image.clone()
        first, again = run(image, 1), run(image, 1)
        assert all(a.equal(b) for a, b in zip(first, again))
        assert image.equal(before) and all(x.dtype == image.dtype for x in first)
        different = {str(x.tolist()) for x in first + run(image, 2) + run(image, 3)}
        assert len(different) > 1
    assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)


def test_places_of_random_crops():
    x = kiln.arange(30).reshape(1, 5, 6).to(kiln.float32)
    seen = {int(transforms.RandomCrop(4)(x)[0, 0, 0].item()) for _ in range(200)}
    assert seen == {0, 1, 2, 6, 7, 8}
    crop = transforms.RandomResizedCrop(3, scale=(0.2, 0.5), ratio=(0.5, 2))
    from kiln.vision.transforms.basic import draws

    for _ in range(200):
        top, left, height, width = crop.place(50, 60, draws())
        assert 0 <= top <= 50 - height and 0 <= left <= 60 - width
        assert 0.18 <= height * width / 3000 <= 0.52 and 0.48 <= width / height <= 2.1
    # No part of a thin image has the ratio: the middle is taken.
    assert crop.place(2, 100, draws()) == (0, 48, 2, 4)
    erased = transforms.RandomErasing(1.0, scale=(0.1, 0.3), value=-1.0)(kiln.zeros(1, 40, 40))
    rows = (erased[0] < 0).any(1).sum().item() * (erased[0] < 0).any(0).sum().item()
    assert (erased < 0).sum().item() == rows and 0.05 <= rows / 1600 <= 0.35
    flips = [transforms.RandomHorizontalFlip(0.25)(x)[0, 0, 0].item() > 0 for _ in range(400)]
    assert 60 <= sum(flips) <= 140


def test_mixed_batches():
    images = kiln.arange(4.0).reshape(4, 1, 1, 1).expand(4, 2, 10, 12).clone()
    labels = kiln.tensor([0, 1, 2, 0])
    for mix in (transforms.MixUp(alpha=0.8, num_classes=3), transforms.CutMix(num_classes=3)):
        shares = []
        for _ in range(20):
            x, y = mix(images, labels)
            assert x.shape == images.shape and y.shape == (4, 3)
            share = y[1, 1].item()
            # The mean of an image is mixed as its label is.
            for i, j in ((1, 0), (2, 1), (3, 2), (0, 3)):
                assert x[i].mean().item() == pytest.approx(share * i + (1 - share) * j, abs=1e-5)
            if isinstance(mix, transforms.CutMix):
                assert set(x.unique().tolist()) <= {0, 1, 2, 3}
            np.testing.assert_allclose(y.sum(1).numpy(), np.ones(4), rtol=1e-6)
            shares.append(share)
        assert len(set(shares)) > 5 and all(0 <= s <= 1 for s in shares)
        again = mix(images, kiln.nn.functional.one_hot(labels, 3))
        assert again[1].shape == (4, 3)


class Pictures(data.Dataset):
    augment = transforms.Compose([
        transforms.RandomCrop(4), transforms.RandomHorizontalFlip(),
        transforms.ToDtype(kiln.float32, scale=True),
    ])  # fmt: skip

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.augment(IMAGES["uint8"])


def test_in_workers():
    def epoch():
        kiln.manual_seed(5)
        return [b.tolist() for b in data.DataLoader(Pictures(), batch_size=2, num_workers=2)]

    assert epoch() == epoch()


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: F.resize(x[0], 4), "ShapeError"),
        (lambda x: F.resize(x, (1, 2, 3)), "ValueError"),
        (lambda x: F.adjust_hue(x, 0.7), "ValueError"),
        (lambda x: F.adjust_contrast(x, -1), "ValueError"),
        (lambda x: F.adjust_contrast(x.to(kiln.int64), 1), "DTypeError"),
        (lambda x: F.normalize(x, [0.5], [0.5]), "DTypeError"),
        (lambda x: F.normalize(x.float(), [0.5], [0.0]), "ValueError"),
        (lambda x: F.posterize(x.float(), 3), "DTypeError"),
        (lambda x: F.gaussian_blur(x, 4), "ValueError"),
        (lambda x: F.pad(x, 1, padding_mode="wrap"), "ValueError"),
        (lambda x: F.resize("x", 4), "TypeError"),
        (lambda x: transforms.RandomCrop(9)(x), "ValueError"),
        (lambda x: transforms.ColorJitter(hue=0.6), "ValueError"),
        (lambda x: transforms.RandomHorizontalFlip(2), "ValueError"),
        (lambda x: transforms.RandAugment(magnitude=31), "ValueError"),
        (lambda x: transforms.RandAugment().apply(x, "Melt"), "ValueError"),
        (lambda x: transforms.MixUp(alpha=0), "ValueError"),
        (lambda x: transforms.MixUp()(x.float()[None], kiln.tensor([1])), "ValueError"),
        (lambda x: transforms.CutMix(num_classes=2)(x[None], kiln.tensor([1])), "DTypeError"),
        (lambda x: transforms.CutMix(num_classes=2)(x, kiln.tensor([1])), "ShapeError"),
    ],
)
def test_refused(call, error):
    with pytest.raises(getattr(errors, error)):
        call(IMAGES["uint8"])
