"""Weights in few bits, and updates of low rank: what fine-tunes a large model on a small machine."""

from .lora import (
    Lora,
    lora,
    lora_parameters,
    merge,
    merge_and_unload,
    qlora,
    unload,
    unmerge,
)
from .quantized import Quantized, QuantizeReport, dequantize_, quantize_

__all__ = [
    "Lora",
    "QuantizeReport",
    "Quantized",
    "dequantize_",
    "lora",
    "lora_parameters",
    "merge",
    "merge_and_unload",
    "qlora",
    "quantize_",
    "unload",
    "unmerge",
]
