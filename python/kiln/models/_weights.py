"""Weights of a model that is made: from a file, or from a state dict."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import kiln

if TYPE_CHECKING:
    from typing import Any

    from .._typing import M


def load_weights(model: M, weights: Any) -> M:
    """The model, with the values of `weights`: None, a state dict, or the name of a file that
    `kiln.load` reads (safetensors, PyTorch's, NumPy's). Every key must be there and fit."""
    if weights is None:
        return model
    if isinstance(weights, (str, os.PathLike)):
        weights = kiln.load(weights)
    if not hasattr(weights, "items"):
        raise TypeError(
            "weights: expected None, a state dict or the name of a file; got "
            f"{type(weights).__name__}"
        )
    model.load_state_dict(weights)
    return model
