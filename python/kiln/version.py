"""The version of this package, by torch.version's names."""

from __future__ import annotations

from . import _C

__version__: str = _C.__version__
cuda: str | None = None  # kernels are compiled where they run
hip: str | None = None
debug = False
git_version = ""
