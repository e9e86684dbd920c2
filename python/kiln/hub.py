"""Weights from the net, kept on disk, by torch.hub's names."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from . import errors
from ._io import load as _load

if TYPE_CHECKING:
    from typing import Any

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

_folder: str | None = None
# The digits that check_hash compares, in the name of a file.
HASH_REGEX = re.compile(r"-([0-9a-f]{8,64})\.")


def _get_torch_home() -> str:
    """The folder of caches: $KILN_HOME or ~/.cache/kiln. (Not PyTorch's, whatever its name says.)"""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("KILN_HOME") or os.path.join(cache, "kiln")


def get_dir() -> str:
    """The folder of what was downloaded: set_dir()'s, $KILN_HOME/hub, or ~/.cache/kiln/hub.

    >>> kiln.hub.get_dir().endswith("hub")
    True
    """
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: str | os.PathLike[str] | None) -> None:
    """Uses the folder d; None: the usual one.

    >>> before = kiln.hub.get_dir()
    >>> kiln.hub.set_dir("/tmp/weights")
    >>> kiln.hub.get_dir()
    '/tmp/weights'
    >>> kiln.hub.set_dir(before)
    """
    global _folder
    _folder = None if d is None else os.fspath(d)


def download_url_to_file(
    url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Writes what is at the address url to the file dst, whole or not at all.

    hash_prefix: how the SHA-256 of the content begins; another one is an IoError. progress: prints
    the address and the size on stderr.

    >>> import os, pathlib, tempfile
    >>> source = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = source.write_text("weights")
    >>> kiln.hub.download_url_to_file(source.as_uri(), source.parent / "b.txt", progress=False)
    >>> (source.parent / "b.txt").read_text()
    'weights'
    """
    target = os.path.expanduser(os.fspath(dst))
    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(target))
    handle, partial = tempfile.mkstemp(dir=folder, suffix=".partial")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "kiln.hub"})
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(request) as source:
            size = source.headers.get("Content-Length")
            if progress:
                print(f"{url} ({size or '?'} bytes) to {target}", file=sys.stderr)
            while block := source.read(1 << 20):
                digest.update(block)
                out.write(block)
        found = digest.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise errors.IoError(
                f"hub: the content of {url} has the SHA-256 {found}; expected one that begins with "
                f"{hash_prefix}"
            )
        shutil.move(partial, target)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """The state dict in the file at the address url, which is downloaded once.

    model_dir: the folder, get_dir()/checkpoints without. check_hash: the file's name holds the
    beginning of its SHA-256, as in resnet18-f37072fd.pth, which is checked. file_name: the name on
    disk, if it is not that of the address. progress: as in download_url_to_file. map_location,
    weights_only: as in kiln.load.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> kiln.save({"w": kiln.ones(2)}, folder / "net.pt")
    >>> state = kiln.hub.load_state_dict_from_url(
    ...     (folder / "net.pt").as_uri(), folder / "cache", progress=False)
    >>> state["w"]
    tensor([1., 1.])
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.fspath(model_dir)
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return _load(path, map_location=map_location, weights_only=weights_only)
