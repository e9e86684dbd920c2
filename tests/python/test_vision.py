"""kiln.vision against SciPy's ndimage, Python's colorsys, and formulas written out in NumPy."""

import colorsys
import math

import numpy as np
import pytest

import kiln
from kiln import vision

ndimage = pytest.importorskip("scipy.ndimage")

# The names that SciPy has for what lies beyond the edges.
BORDERS = {
    "reflect": "mirror", "symmetric": "reflect", "replicate": "nearest", "circular": "wrap",
    "constant": "constant",
}  # fmt: skip


def image(shape=(2, 9, 11), dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, shape).astype(dtype)


def near(ours, theirs, tolerance=1e-12):
    theirs = np.asarray(theirs)
    assert tuple(ours.shape) == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, atol=tolerance, rtol=tolerance)


def each(f, x):
    return np.stack([f(plane) for plane in x])


def turns(f, *inputs):
    """The gradient equals finite differences."""
    assert kiln.autograd.gradcheck(f, [kiln.from_numpy(x).requires_grad_() for x in inputs])


@pytest.mark.parametrize("border", BORDERS)
def test_filters_and_borders(border):
    x = image()
    given = kiln.from_numpy(x)
    mode = BORDERS[border]
    kernel = image((3, 5), seed=1)
    near(
        vision.filter2d(given, kiln.from_numpy(kernel), border, 0.3),
        each(lambda p: ndimage.correlate(p, kernel, mode=mode, cval=0.3), x),
    )
    near(
        vision.box_blur(given, 5, border),
        each(lambda p: ndimage.uniform_filter(p, 5, mode=mode), x),
    )
    near(
        vision.gaussian_blur(given, 7, 1.1, border),
        each(lambda p: ndimage.gaussian_filter(p, 1.1, mode=mode, radius=3), x),
    )
    near(
        vision.median_blur(given, 3, border),
        each(lambda p: ndimage.median_filter(p, 3, mode=mode), x),
    )
    dx, dy = vision.sobel(given, border)
    near(dx, each(lambda p: ndimage.sobel(p, 1, mode=mode), x))
    near(dy, each(lambda p: ndimage.sobel(p, 0, mode=mode), x))
    near(vision.sobel_magnitude(given, border), np.hypot(dx.numpy(), dy.numpy()))
    near(
        vision.laplacian(given, border),
        each(lambda p: ndimage.laplace(p, mode=mode), x),
    )
    # Far beyond the edges, too.
    names = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge"}
    if border in names:
        small = image((2, 3))
        padded = vision.pad_border(kiln.from_numpy(small), 5, 4, 7, 8, border)
        near(padded, np.pad(small, ((5, 4), (7, 8)), names[border]), 0)


def test_small_filters():
    x = image((1, 3, 6, 7))
    given = kiln.from_numpy(x)
    near(vision.gaussian_kernel(3), np.exp([-0.78125, 0, -0.78125]) / (1 + 2 * np.exp(-0.78125)))
    blurred = vision.gaussian_blur(given, 5)
    near(vision.unsharp_mask(given, 5, amount=0.5), x + 0.5 * (x - blurred.numpy()))
    column, row = image((3,), seed=1), image((5,), seed=2)
    near(
        vision.separable_filter2d(given, kiln.from_numpy(column), kiln.from_numpy(row)),
        vision.filter2d(given, kiln.from_numpy(np.outer(column, row))).numpy(),
    )
    # Bytes have a median, too; a two-dimensional image is one.
    bytes_ = (image((5, 6)) * 255).astype(np.uint8)
    near(
        vision.median_blur(kiln.from_numpy(bytes_), 5),
        ndimage.median_filter(bytes_, 5, mode="nearest"),
        0,
    )


def test_bilateral_filter():
    x = image((5, 6))
    wide = np.pad(x, 1, "reflect")
    expected = np.zeros_like(x)
    for r in range(5):
        for c in range(6):
            part = wide[r : r + 3, c : c + 3]
            dy, dx = np.mgrid[-1:2, -1:2]
            weight = np.exp(-(dx**2 + dy**2) / (2 * 0.8**2) - (part - x[r, c]) ** 2 / (2 * 0.2**2))
            expected[r, c] = (weight * part).sum() / weight.sum()
    near(vision.bilateral_filter(kiln.from_numpy(x), 3, 0.2, 0.8), expected)


KERNELS = {
    "rect": np.ones((3, 4), bool),
    "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool),
    "lopsided": np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [0, 0, 1]], bool),
}


def shifted_extreme(x, kernel, largest, times=1, anchor=None):
    """By the definition, one pixel at a time; nothing lies outside."""
    rows, columns = kernel.shape
    row, column = anchor or (rows // 2, columns // 2)
    for _ in range(times):
        out = np.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                values = [
                    x[i + r - row, j + c - column]
                    for r, c in zip(*np.nonzero(kernel))
                    if 0 <= i + r - row < x.shape[0] and 0 <= j + c - column < x.shape[1]
                ]
                if values:
                    out[i, j] = max(values) if largest else min(values)
                else:
                    out[i, j] = -np.inf if largest else np.inf
        x = out
    return x


@pytest.mark.parametrize("name", KERNELS)
def test_morphology_by_its_definition(name):
    kernel = KERNELS[name]
    x = image((7, 8))
    given, k = kiln.from_numpy(x), kiln.from_numpy(kernel)
    near(vision.dilate(given, k), shifted_extreme(x, kernel, True), 0)
    near(vision.erode(given, k, iterations=2), shifted_extreme(x, kernel, False, 2), 0)
    near(
        vision.dilate(given, k, anchor=(0, 1)), shifted_extreme(x, kernel, True, anchor=(0, 1)), 0
    )
    assert vision.dilate(given, k, iterations=0) is not None


@pytest.mark.parametrize("border", BORDERS)
def test_morphology_against_scipy(border):
    x = image((6, 9))
    given = kiln.from_numpy(x)
    for footprint in (np.ones((3, 3), bool), KERNELS["cross"]):
        k = kiln.from_numpy(footprint)
        options = dict(footprint=footprint, mode=BORDERS[border], cval=0.4)
        ours = dict(border=border, border_value=0.4)
        near(vision.erode(given, k, **ours), ndimage.grey_erosion(x, **options), 0)
        near(vision.dilate(given, k, **ours), ndimage.grey_dilation(x, **options), 0)
        near(vision.opening(given, k, **ours), ndimage.grey_opening(x, **options), 0)
        near(vision.closing(given, k, **ours), ndimage.grey_closing(x, **options), 0)
        near(vision.top_hat(given, k, **ours), ndimage.white_tophat(x, **options), 1e-15)
        near(vision.black_hat(given, k, **ours), ndimage.black_tophat(x, **options), 1e-15)
        gradient = ndimage.grey_dilation(x, **options) - ndimage.grey_erosion(x, **options)
        near(vision.morphological_gradient(given, k, **ours), gradient, 1e-15)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_morphology_of_integers_and_bools(dtype):
    rng = np.random.default_rng(3)
    if dtype == np.bool_:
        x = rng.uniform(size=(8, 9)) < 0.6
    else:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (8, 9), dtype, endpoint=True)
    cross = KERNELS["cross"]
    given, k = kiln.from_numpy(x), kiln.from_numpy(cross)
    eroded, dilated = vision.erode(given, k), vision.dilate(given, k)
    assert eroded.numpy().dtype == dtype
    if dtype == np.bool_:
        near(eroded, ndimage.binary_erosion(x, cross, border_value=1), 0)
        near(dilated, ndimage.binary_dilation(x, cross), 0)
        opened = ndimage.binary_dilation(eroded.numpy(), cross)
        near(vision.opening(given, k), opened, 0)
        near(vision.morphological_gradient(given, k), dilated.numpy() ^ eroded.numpy(), 0)
    else:
        near(eroded, shifted_extreme(x, cross, False), 0)
        near(dilated, shifted_extreme(x, cross, True), 0)


def test_structuring_elements():
    assert vision.structuring_element("rect", 2, 3).tolist() == [[True] * 3] * 2
    near(vision.structuring_element("cross", 3, 3), KERNELS["cross"], 0)
    ellipse = vision.structuring_element("ellipse", 5, 7).numpy()
    assert ellipse[2].all() and ellipse[:, 3].all() and not ellipse[0, 0]
    assert (ellipse == ellipse[::-1]).all() and (ellipse == ellipse[:, ::-1]).all()


@pytest.mark.parametrize("connectivity", [4, 8])
def test_connected_components(connectivity):
    x = np.random.default_rng(5).uniform(size=(3, 20, 30)) < 0.45
    structure = ndimage.generate_binary_structure(2, connectivity // 4)
    stats = vision.connected_components_with_stats(kiln.from_numpy(x), connectivity)
    labels = vision.connected_components(kiln.from_numpy(x), connectivity)
    assert kiln.equal(labels, stats["labels"])
    for i in range(3):
        theirs, count = ndimage.label(x[i], structure)
        ours = labels[i].numpy()
        assert stats["count"][i].item() == count == ours.max()
        # The same components; ours are numbered by their first pixels.
        pairs = set(zip(ours.ravel(), theirs.ravel()))
        assert len(pairs) == count + 1
        first = [np.flatnonzero(ours.ravel() == k)[0] for k in range(1, count + 1)]
        assert first == sorted(first)
        for k, (rows, columns) in enumerate(ndimage.find_objects(ours), 1):
            assert stats["top"][i, k].item() == rows.start
            assert stats["bottom"][i, k].item() == rows.stop - 1
            assert stats["left"][i, k].item() == columns.start
            assert stats["right"][i, k].item() == columns.stop - 1
            assert stats["area"][i, k].item() == (ours == k).sum()
        middle = ndimage.center_of_mass(ours > 0, ours, range(1, count + 1))
        near(stats["centroid"][i, 1 : count + 1], np.array(middle)[:, ::-1])
        assert stats["area"][i, 0].item() == (~x[i]).sum()
        assert stats["area"][i, count + 1 :].sum().item() == 0


def test_components_of_a_spiral_and_of_nothing():
    comb = np.ones((7, 9), np.float32)
    comb[:-1, 1::2] = 0  # teeth that meet only in the last row
    assert vision.connected_components(kiln.from_numpy(comb), 4).max().item() == 1
    assert vision.connected_components(kiln.from_numpy(comb[:-1]), 4).max().item() == 5
    assert vision.connected_components(kiln.zeros(4, 4)).sum().item() == 0


def test_colour_spaces_of_points():
    rgb = image((3, 6, 7), seed=2)
    rgb[:, 0, 0], rgb[:, 0, 1], rgb[:, 0, 2] = 0, 1, 0.5
    rgb[:, 0, 3] = [1, 0, 0]
    given = kiln.from_numpy(rgb)
    flat = rgb.reshape(3, -1).T
    hsv = np.array([colorsys.rgb_to_hsv(*p) for p in flat]).T.reshape(rgb.shape)
    near(vision.rgb_to_hsv(given), hsv)
    near(vision.hsv_to_rgb(kiln.from_numpy(hsv)), rgb)
    near(vision.rgb_to_grayscale(given)[0], 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2])
    ycc = vision.rgb_to_ycbcr(given)
    # The matrix of the JPEG file interchange format, which has six digits.
    near(ycc[1], -0.168736 * rgb[0] - 0.331264 * rgb[1] + 0.5 * rgb[2] + 0.5, 1e-6)
    near(ycc[2], 0.5 * rgb[0] - 0.418688 * rgb[1] - 0.081312 * rgb[2] + 0.5, 1e-6)
    near(vision.ycbcr_to_rgb(ycc), rgb)
    near(vision.rgb_to_bgr(given), rgb[::-1])
    near(vision.grayscale_to_rgb(given[:1]), np.repeat(rgb[:1], 3, 0))


def lab_of(rgb):
    """CIE 15:2004, from sRGB under D65."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    matrix = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = [sum(m * c for m, c in zip(row, linear)) for row in matrix]
    f = [
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (v / w for v, w in zip(xyz, (0.95047, 1.0, 1.08883)))
    ]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]


def test_lab():
    rgb = image((3, 4, 5), seed=4)
    rgb[:, 0, 0], rgb[:, 0, 1], rgb[:, 0, 2] = 0, 1, 0.02
    rgb[:, 0, 3] = [1, 0, 0]
    given = kiln.from_numpy(rgb)
    lab = vision.rgb_to_lab(given)
    expected = np.array([lab_of(p) for p in rgb.reshape(3, -1).T]).T.reshape(rgb.shape)
    near(lab, expected, 1e-9)
    # Published values of white and of red.
    near(lab[:, 0, 1], [100, 0, 0], 2e-2)
    near(lab[:, 0, 3], [53.24, 80.09, 67.20], 1e-2)
    near(vision.lab_to_rgb(lab), rgb, 1e-9)
    near(vision.xyz_to_rgb(vision.rgb_to_xyz(given)), rgb, 1e-9)
    near(vision.linear_to_srgb(vision.srgb_to_linear(given)), rgb, 1e-9)


def test_warp_against_scipy():
    x = image((2, 9, 11))
    given = kiln.from_numpy(x)
    t = vision.Transform2D.rotation(33, (4, 5)).then(vision.Transform2D.scaling(1.3, 0.8))
    t = t.then(vision.Transform2D.shearing(10, -5)).then(vision.Transform2D.translation(1.5, -2))
    back = np.linalg.inv(t.matrix.numpy())
    # SciPy's points are (row, column).
    matrix, offset = back[:2, :2][::-1, ::-1], back[:2, 2][::-1]
    wide = lambda p, order: ndimage.affine_transform(  # noqa: E731
        p, matrix, offset, order=order, mode="grid-constant"
    )
    near(vision.warp(given, t), each(lambda p: wide(p, 1), x), 1e-9)
    near(vision.warp(given, t, "nearest"), each(lambda p: wide(p, 0), x), 1e-9)
    near(vision.warp(given, t.matrix), vision.warp(given, t).numpy(), 1e-12)
    edge = each(
        lambda p: ndimage.affine_transform(p, matrix, offset, order=1, mode="nearest"), x
    )
    near(vision.warp(given, t, padding_mode="border"), edge, 1e-9)
    assert vision.warp(given, t, size=(4, 6)).shape == (2, 4, 6)
    near(vision.warp(given, t, size=(4, 6)), vision.warp(given, t)[:, :4, :6].numpy(), 1e-12)


def test_turns_are_those_of_the_picture():
    x = image((3, 7, 7))
    given = kiln.from_numpy(x)
    near(vision.rotate(given, 90), np.rot90(x, 1, (1, 2)), 1e-12)
    near(vision.rotate(given, -180), np.rot90(x, 2, (1, 2)), 1e-12)
    near(vision.translate(given, 2, -1)[:, :-1, 2:], x[:, 1:, :-2], 1e-12)
    near(vision.translate(given, 2, 0)[:, :, :2], np.zeros((3, 7, 2)), 1e-12)
    near(vision.scale(given, -1, 1), x[:, :, ::-1], 1e-12)
    near(vision.hflip(given), x[:, :, ::-1], 0)
    near(vision.vflip(given), x[:, ::-1], 0)
    near(vision.crop(given, 1, 2, 3, 4), x[:, 1:4, 2:6], 0)
    near(vision.center_crop(given, 3, 5), x[:, 2:5, 1:6], 0)
    # tan 45 is 1: each row moves by its distance from the middle.
    sheared = vision.shear(given, 45, 0)
    near(sheared[:, 5, 2:], x[:, 5, :-2], 1e-9)
    near(sheared[:, 1, :-2], x[:, 1, 2:], 1e-9)


def test_perspective():
    corners = [(0, 0), (10, 0), (10, 8), (0, 8)]
    seen = [(1, 2), (9, 0), (12, 9), (-1, 7)]
    t = vision.Transform2D.perspective(corners, seen)
    for p, q in zip(corners, seen):
        assert t(*p) == pytest.approx(q)
        assert t.inverse()(*q) == pytest.approx(p, abs=1e-9)
    # What is read where: by the points themselves.
    x = image((9, 11))
    back = t.inverse()
    points = np.array([[back(c, r) for c in range(11)] for r in range(9)])
    expected = ndimage.map_coordinates(
        x, [points[..., 1], points[..., 0]], order=1, mode="grid-constant"
    )
    near(vision.warp(kiln.from_numpy(x), t), expected, 1e-9)


def test_resize():
    x = kiln.from_numpy(image((2, 3, 8, 10)))
    for mode in ("bilinear", "bicubic"):
        expected = kiln.nn.functional.interpolate(x, size=(4, 7), mode=mode, antialias=True)
        near(vision.resize(x, (4, 7), mode), expected.numpy())
    near(vision.resize(x[0, 0], (16, 20), "nearest"), np.kron(x[0, 0].numpy(), np.ones((2, 2))))
    assert vision.resize((x * 255).to(kiln.uint8), (4, 5)).dtype == kiln.uint8


def slow_nms(boxes, scores, threshold):
    def iou(a, b):
        w = max(0, min(a[2], b[2]) - max(a[0], b[0]))
        h = max(0, min(a[3], b[3]) - max(a[1], b[1]))
        area = lambda c: (c[2] - c[0]) * (c[3] - c[1])  # noqa: E731
        return w * h / (area(a) + area(b) - w * h)

    left = sorted(range(len(scores)), key=lambda i: -scores[i])
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [i for i in left if iou(boxes[best], boxes[i]) <= threshold]
    return kept


def test_nms():
    rng = np.random.default_rng(0)
    corner, size = rng.uniform(0, 50, (60, 2)), rng.uniform(5, 25, (60, 2))
    boxes, scores = np.concatenate([corner, corner + size], 1), rng.uniform(size=60)
    classes = rng.integers(0, 3, 60)
    b, s = kiln.from_numpy(boxes), kiln.from_numpy(scores)
    for threshold in (0.1, 0.5, 0.9):
        assert vision.nms(b, s, threshold).tolist() == slow_nms(boxes, scores, threshold)
    expected = []
    for c in range(3):
        at = np.flatnonzero(classes == c)
        expected += [at[i] for i in slow_nms(boxes[at], scores[at], 0.3)]
    found = vision.batched_nms(b, s, kiln.from_numpy(classes), 0.3).tolist()
    assert found == sorted(expected, key=lambda i: -scores[i])
    assert vision.nms(b, s, 0.5, max_boxes=3).tolist() == slow_nms(boxes, scores, 0.5)[:3]
    high = vision.nms(b, s, 0.5, score_threshold=0.5).tolist()
    assert high == [i for i in slow_nms(boxes, scores, 0.5) if scores[i] >= 0.5]
    assert vision.nms(kiln.zeros(0, 4), kiln.zeros(0)).tolist() == []
    same = kiln.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2], [1, 1, 3, 3]])
    near(vision.box_area(same), np.full(3, 4, np.float32))
    near(vision.box_iou(same, same)[0], np.array([1, 1, 1 / 7], np.float32), 1e-6)
    assert vision.nms(same, kiln.ones(3)).tolist() == [0, 2]  # of equals the first


def test_gradients():
    x = image((5, 6), seed=7)
    colour = 0.1 + 0.8 * image((3, 3, 4), seed=8)
    cross = kiln.from_numpy(KERNELS["cross"])
    turns(lambda a, k: vision.filter2d(a, k, "symmetric"), x, image((3, 2), seed=9))
    turns(lambda a: vision.median_blur(a, 3), x)
    turns(lambda a: vision.bilateral_filter(a, 3, 0.5, 1.0), x)
    turns(lambda a: vision.opening(a, cross), x)
    turns(lambda a: vision.dilate(a, kiln.ones(3, 3)), x)
    for f in ("rgb_to_hsv", "hsv_to_rgb", "rgb_to_ycbcr", "rgb_to_lab"):
        turns(getattr(vision, f), colour)
    turns(lambda a: vision.lab_to_rgb(vision.rgb_to_lab(a)), colour)
    t = vision.Transform2D.rotation(20, (2.3, 3.1)).matrix.numpy()
    turns(lambda a, m: vision.warp(a, m), x, t)
    boxes = np.array([[0.0, 0, 3, 2], [1, 1, 4, 4], [8, 8, 9, 9]])
    turns(vision.box_iou, boxes, boxes + 0.25)
    # Greys have no hue, and black no saturation: there are no NaN.
    grey = kiln.zeros(3, 1, 2, requires_grad=True)
    vision.rgb_to_hsv(grey).sum().backward()
    vision.rgb_to_lab(grey).sum().backward()
    assert math.isfinite(grey.grad.abs().sum().item())


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: vision.gaussian_blur(x, 4), "odd"),
        (lambda x: vision.gaussian_blur(x, 3, -1.0), "sigma"),
        (lambda x: vision.gaussian_blur(x.to(kiln.uint8), 3), "float32 or float64"),
        (lambda x: vision.gaussian_blur(kiln.zeros(5), 3), "expected an image"),
        (lambda x: vision.gaussian_blur(kiln.zeros(2, 0, 3), 3), "expected an image"),
        (lambda x: vision.box_blur(x, 3, "mirror"), "unknown border mode"),
        (lambda x: vision.median_blur(x, 33), "odd and from 1 to 31"),
        (lambda x: vision.filter2d(x, kiln.ones(3)), r"\[rows, columns\]"),
        (lambda x: vision.filter2d(x, kiln.ones(3, 3).double()), "one dtype"),
        (lambda x: vision.bilateral_filter(x, 3, 0.0, 1.0), "sigmas"),
        (lambda x: vision.pad_border(x, -1, 0, 0, 0), "widths"),
        (lambda x: vision.pad_border(x, 2**60, 0, 0, 0), "widths"),
        (lambda x: vision.dilate(x, kiln.zeros(3, 3)), "not 0"),
        (lambda x: vision.dilate(x, kiln.ones(3)), "kernel"),
        (lambda x: vision.erode(x, kiln.ones(3, 3), anchor=(3, 0)), "anchor"),
        (lambda x: vision.erode(x, kiln.ones(3, 3), iterations=-1), "iterations"),
        (lambda x: vision.structuring_element("star", 3, 3), "unknown shape"),
        (lambda x: vision.structuring_element("rect", 0, 3), "sizes"),
        (lambda x: vision.connected_components(x, 6), "4 or 8"),
        (lambda x: vision.rgb_to_hsv(x), r"\[.., 3, H, W\]"),
        (lambda x: vision.warp(x, vision.Transform2D.scaling(0, 1)), "no inverse"),
        (lambda x: vision.warp(x, kiln.eye(2)), r"\[3, 3\]"),
        (lambda x: vision.warp(x, kiln.eye(3), size=(0, 3)), "sizes"),
        (lambda x: vision.rotate(x, 10.0, "cubic"), "unknown mode"),
        (lambda x: vision.crop(x, 0, 0, 9, 9), "outside"),
        (lambda x: vision.nms(kiln.zeros(2, 3), kiln.zeros(2)), r"\[N, 4\]"),
        (lambda x: vision.nms(kiln.zeros(2, 4), kiln.zeros(3)), "as many scores"),
        (lambda x: vision.nms(kiln.zeros(1, 4), kiln.full((1,), math.nan)), "NaN"),
        (lambda x: vision.nms(kiln.zeros(2, 4), kiln.zeros(2), 1.5), "iou_threshold"),
        (lambda x: vision.batched_nms(kiln.zeros(2, 4), kiln.zeros(2), kiln.zeros(2)), "integers"),
        (lambda x: vision.Transform2D.perspective([(0, 0)] * 4, [(0, 0)] * 4), "line"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(kiln.errors.Error, match=text):
        call(kiln.zeros(4, 5))
