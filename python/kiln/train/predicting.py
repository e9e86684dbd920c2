"""What models of ``kiln train`` say of new data, from Python."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from .. import errors
from .._command import program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import StrPath

__all__ = ["predict"]


def predict(
    run: StrPath, inputs: Sequence[StrPath] | StrPath = (), *, texts: Sequence[str] = (),
    top: int = 1, masks: StrPath | None = None, tokenizer: StrPath | None = None,
    skip_bad: bool = False, batch: int = 32, threads: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """What a model of ``kiln train`` makes of new data: a dict for each input, as ``kiln predict --json``
    prints it.

    run: a run's folder, or its model.safetensors. inputs: images or sounds, folders of them, tables, files
    of texts; texts: texts themselves. top: so many classes. masks: the folder for the masks of a
    segmentation. skip_bad: leaves out what cannot be read; otherwise it is a ValueError, with all that is
    wrong. Raises FileNotFoundError where the package has no program (docs/train.md).

    >>> kiln.train.predict("runs/images", ["photo.jpg"], top=0)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: predict: top must be an integer from 1 on; got 0
    """
    for name, count in (("top", top), ("batch", batch), ("threads", 1 if threads is None else threads)):
        if not isinstance(count, int) or count < 1:
            raise errors.ValueError(f"predict: {name} must be an integer from 1 on; got {count!r}")
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [inputs]
    arguments = [str(program()), "predict", os.fsdecode(run), "--json"]
    arguments += ["--top", str(top), "--batch", str(batch)]
    for flag, value in (("--masks", masks), ("--tokenizer", tokenizer)):
        if value is not None:
            arguments += [flag, os.fsdecode(value)]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    if skip_bad:
        arguments.append("--skip-bad")
    for text in texts:
        arguments += ["--text", text]
    arguments += [os.fsdecode(path) for path in inputs]
    done = subprocess.run(arguments, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise errors.ValueError(f"predict: {done.stderr.strip()}")
    return list(json.loads(done.stdout)["predictions"])
