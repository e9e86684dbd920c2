"""JPEG and WebP beside Pillow, and what is said of files that are damaged."""

import io
import pathlib

import numpy as np
import pytest

import kiln
from kiln import errors
from kiln.utils import data

Image = pytest.importorskip("PIL.Image")

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "images"
FORMATS = kiln._C._vision._image_formats()
KINDS = [k for k in ("JPEG", "WEBP") if k.lower() in FORMATS]


def photo(height, width, seed=0):
    """Smooth shapes and some noise, uint8 [H, W, 3]."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / a + c) * np.cos(y / b) for a, b, c in rng.uniform(3, 20, (3, 3))]
    return (np.stack(waves, -1) * 90 + 128 + rng.normal(0, 8, (height, width, 3))).clip(0, 255).astype(np.uint8)


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def pixels_of(image):
    return np.asarray(image).transpose(2, 0, 1)


def assert_close(found, expected):
    """Equal, but for what another version of the same library rounds otherwise."""
    difference = np.abs(found.astype(int) - expected.astype(int))
    assert difference.max() <= 2 and difference.mean() < 0.02


JPEGS = [
    {"quality": 75}, {"quality": 95, "subsampling": 0}, {"quality": 30, "subsampling": 1},
    {"quality": 80, "progressive": True}, {"quality": 80, "optimize": True},
    {"quality": 80, "restart_marker_rows": 1}, {"quality": 85, "keep_rgb": True},
]  # fmt: skip


@pytest.mark.skipif("JPEG" not in KINDS, reason="this build reads no JPEG")
@pytest.mark.parametrize("options", JPEGS)
@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (64, 48), (121, 87)])
def test_jpeg(options, shape):
    content = encoded(Image.fromarray(photo(*shape)), "JPEG", **options)
    found = kiln.vision.decode_image(content).numpy()
    assert found.dtype == np.uint8
    assert_close(found, pixels_of(Image.open(io.BytesIO(content)).convert("RGB")))
    luma = Image.open(io.BytesIO(content))
    if not options.get("keep_rgb"):
        luma.draft("L", luma.size)  # the file's own luma, not that of its colours
    assert_close(kiln.vision.decode_image(content, "GRAY").numpy(), np.asarray(luma.convert("L"))[None])


@pytest.mark.skipif("JPEG" not in KINDS, reason="this build reads no JPEG")
def test_jpeg_of_other_colours():
    image = Image.fromarray(photo(40, 30))
    for mode in ("L", "CMYK"):
        content = encoded(image.convert(mode), "JPEG", quality=90)
        expected = Image.open(io.BytesIO(content))
        assert expected.mode == mode
        assert_close(kiln.vision.decode_image(content).numpy(), pixels_of(expected.convert("RGB")))
    gray = kiln.vision.decode_image(encoded(image.convert("L"), "JPEG"), "GRAY")
    assert gray.shape == (1, 40, 30)


@pytest.mark.skipif("WEBP" not in KINDS, reason="this build reads no WebP")
@pytest.mark.parametrize("options", [{"quality": 60}, {"quality": 95}, {"lossless": True}])
@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (121, 87)])
def test_webp(options, shape):
    image = Image.fromarray(photo(*shape))
    content = encoded(image, "WEBP", **options)
    expected = pixels_of(Image.open(io.BytesIO(content)).convert("RGB"))
    assert_close(kiln.vision.decode_image(content).numpy(), expected)
    clear = image.copy()
    clear.putalpha(Image.fromarray(photo(*shape, seed=1)[..., 0]))
    content = encoded(clear, "WEBP", exact=True, **options)
    found = Image.open(io.BytesIO(content)).convert("RGBA")
    white = Image.new("RGBA", found.size, "white")
    assert_close(
        kiln.vision.decode_image(content).numpy(),
        pixels_of(Image.alpha_composite(white, found).convert("RGB")),
    )


@pytest.mark.parametrize("kind", KINDS + ["PNG"])
@pytest.mark.parametrize("orientation", range(0, 10))
def test_orientation(kind, orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x010F] = "a camera"
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(photo(24, 17)), kind, exif=exif)
    image = Image.open(io.BytesIO(content))
    # As in Pillow and torchvision a picture is left as it is stored, unless one asks.
    assert_close(kiln.vision.decode_image(content).numpy(), pixels_of(image.convert("RGB")))
    upright = pixels_of(ImageOps.exif_transpose(image).convert("RGB"))
    found = kiln.vision.decode_image(content, apply_exif_orientation=True).numpy()
    assert found.shape == upright.shape
    assert_close(found, upright)


@pytest.mark.skipif("JPEG" not in KINDS, reason="this build reads no JPEG")
def test_damaged(tmp_path):
    for name, message in (
        ("cut.jpg", "Premature end"), ("lies.jpg", "60000x60000 pixels in"),
        ("twelve_bits.jpg", "precision 12"), ("arithmetic.jpg", "arithmetic"),
    ):  # fmt: skip
        with pytest.raises(errors.IoError, match=f"{name}' is no usable JPEG.*{message}"):
            kiln.vision.read_image(FIXTURES / name)
    large = encoded(Image.new("RGB", (3000, 3000)), "JPEG", quality=1)
    with pytest.raises(errors.IoError, match="bytes"):
        kiln.vision.decode_image(large, max_ratio=1)
    assert kiln.vision.decode_image(large, max_ratio=2000).shape == (3, 3000, 3000)


@pytest.mark.skipif("JPEG" not in KINDS, reason="this build reads no JPEG")
def test_folder_of_photos(tmp_path):
    for i, name in enumerate(("cat/a.jpg", "cat/b.JPEG", "dog/c.jpg", "dog/d.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(photo(20, 30, seed=i)).save(tmp_path / name)
    (tmp_path / "dog" / "broken.jpg").write_bytes((FIXTURES / "cut.jpg").read_bytes())
    folder = data.ImageFolder(tmp_path)
    assert len(folder) == 5
    with pytest.raises(errors.IoError, match=r"dog/broken\.jpg"):
        folder[2]
    folder = data.ImageFolder(tmp_path, errors="skip")
    images, labels = next(iter(data.DataLoader(folder, batch_size=5, num_workers=1)))
    assert images.shape == (5, 3, 20, 30) and labels.tolist() == [0, 0, 1, 1, 1]
