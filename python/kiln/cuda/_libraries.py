"""Where NVIDIA's Python packages keep their libraries: NVRTC, cuBLASLt and cuDNN."""

import os as _os
import sys as _sys

# Folders that the libraries are looked for in where the loader does not find them.
_VARIABLE = "KILN_CUDA_LIBRARIES"


def announce() -> None:
    """Names the packages' folders to Kiln's libraries, unless the environment names others."""
    if _VARIABLE in _os.environ:
        return
    found: list[str] = []
    for path in _sys.path:
        root = _os.path.join(path, "nvidia")
        if _os.path.isdir(root):
            found += (_os.path.join(root, name, "lib") for name in sorted(_os.listdir(root)))
    found = [folder for folder in found if _os.path.isdir(folder)]
    if found:
        _os.environ[_VARIABLE] = ":".join(found)
