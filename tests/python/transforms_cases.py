"""Calls whose results torchvision recorded in transforms_reference.json."""

import numpy as np

IMAGE = np.random.default_rng(5).integers(0, 256, (3, 7, 6)).astype(np.uint8)
IMAGE[1] = IMAGE[1] // 3 + 40  # for autocontrast
LARGE = np.random.default_rng(6).integers(0, 256, (3, 20, 24)).astype(np.uint8) // 3 * 2

# (function, arguments, options). Options may differ in both libraries' types: see TORCH.
BOTH = [
    ("adjust_brightness", (1.4,), {}), ("adjust_brightness", (0.3,), {}),
    ("adjust_contrast", (1.7,), {}), ("adjust_contrast", (0.2,), {}),
    ("adjust_saturation", (2.5,), {}), ("adjust_saturation", (0.5,), {}),
    ("adjust_hue", (0.2,), {}), ("adjust_hue", (-0.4,), {}),
    ("adjust_gamma", (2.2,), {"gain": 0.9}),
    ("adjust_sharpness", (2.5,), {}), ("adjust_sharpness", (0.3,), {}),
    ("rgb_to_grayscale", (3,), {}), ("rgb_to_grayscale", (), {}), ("invert", (), {}),
    ("autocontrast", (), {}), ("gaussian_blur", ([5, 3], [1.5, 0.7]), {}),
    ("gaussian_blur", (3,), {}),
    ("resize", ([5, 4],), {}), ("resize", (4,), {}), ("resize", (10,), {"max_size": 11}),
    ("crop", (2, 1, 3, 4), {}), ("crop", (-2, 3, 6, 6), {}), ("center_crop", ([4, 3],), {}),
    ("center_crop", ([9, 4],), {}), ("resized_crop", (1, 2, 5, 4, [6, 6]), {}),
    ("pad", ([1, 2],), {"fill": 0}), ("pad", ([1, 2, 3, 0],), {"padding_mode": "edge"}),
    ("pad", (2,), {"padding_mode": "reflect"}), ("pad", (2,), {"padding_mode": "symmetric"}),
    ("erase", (1, 2, 3, 2, 0), {}), ("hflip", (), {}), ("vflip", (), {}),
    ("rotate", (30.0,), {}), ("rotate", (-70.0,), {"interpolation": "bilinear"}),
    ("affine", (20.0, [1, -2], 1.3, [15.0, -5.0]), {"interpolation": "bilinear"}),
    ("affine", (0.0, [2, 0], 1.0, [10.0, 0.0]), {"center": [0, 0]}),
    ("affine", (-40.0, [0, 0], 0.7, [0.0, 0.0]), {}),
]  # fmt: skip
BYTES = [
    ("posterize", (3,), {}), ("posterize", (0,), {}), ("solarize", (120,), {}), ("equalize", (), {}),
]  # fmt: skip
