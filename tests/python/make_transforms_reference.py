"""Writes transforms_reference.json. Needs torchvision; the tests need the file alone.

    python tests/python/make_transforms_reference.py
"""

import json
import pathlib

import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from transforms_cases import BOTH, BYTES, IMAGE, LARGE


def result(image, name, arguments, options):
    options = dict(options)
    if "interpolation" in options:
        options["interpolation"] = InterpolationMode(options["interpolation"])
    out = getattr(F, name)(image, *arguments, **options)
    values = out.flatten().tolist()
    return [list(out.shape), values if out.dtype == torch.uint8 else [round(v, 6) for v in values]]


def main():
    image = torch.tensor(IMAGE)
    data = {
        "uint8": [result(image, *case) for case in BOTH],
        "float32": [result(image / 255, *case) for case in BOTH],
        "bytes": [result(image, *case) for case in BYTES],
        "equalized": result(torch.tensor(LARGE), "equalize", (), {}),
    }
    path = pathlib.Path(__file__).parent / "transforms_reference.json"
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
