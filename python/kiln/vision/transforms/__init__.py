"""Transforms of images for training, under torchvision's names.

    augment = transforms.Compose([
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToDtype(kiln.float32, scale=True),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])

Images are tensors [.., C, H, W]: uint8 from 0 to 255, or floats from 0 to 1. What is random depends on
kiln's default generator alone, which kiln.manual_seed sets, and which each loader's worker has of its own.
"""

from . import functional
from .augment import CutMix, MixUp, RandAugment, RandomErasing
from .basic import (
    CenterCrop,
    ColorJitter,
    Compose,
    FiveCrop,
    GaussianBlur,
    Grayscale,
    Lambda,
    Normalize,
    Pad,
    RandomAffine,
    RandomApply,
    RandomChoice,
    RandomCrop,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    ToDtype,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "Lambda",
    "MixUp",
    "Normalize",
    "Pad",
    "RandAugment",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "functional",
]
