"""Recorders: records of modules in files and in memory, in Burn's formats and in safetensors.

    model.save_file("model", kiln.record.NamedMpkFileRecorder())        # model.mpk
    model.load_file("model", kiln.record.NamedMpkFileRecorder())

Every file is treated as hostile: an IoError, and nothing is changed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _C
from ._C import (
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    PrecisionSettings,
    Record,
    RecordItem,
)

if TYPE_CHECKING:
    from typing import Any

    from ._typing import DeviceLike, StrPath

_FORMATS = _C._RecordFormat


class Recorder:
    """Writes records to files of one format, in the dtypes of `settings`, and reads them.

    >>> issubclass(kiln.record.CborFileRecorder, kiln.record.Recorder)
    True
    """

    _format: Any = None
    _gzip = False

    def __init__(self, settings: Any = FullPrecisionSettings) -> None:
        if self._format is None:
            raise TypeError("Recorder: an abstract class; try NamedMpkFileRecorder()")
        self._recorder = _C._Recorder(self._format, self._gzip, settings)

    @property
    def settings(self) -> Any:
        """The dtypes that numbers are stored in."""
        return self._recorder.settings

    @property
    def extension(self) -> str:
        """"mpk.gz": added to a path that does not end in it."""
        return self._recorder.extension

    def record(self, record: Record, path: StrPath) -> None:
        """Replaces the file only when the new one is complete. IoError."""
        self._recorder.record(record, os.fspath(path))

    def load(self, path: StrPath, device: DeviceLike = "cpu") -> Record:
        """The record in a file. IoError when it is missing, malformed or of another format."""
        return self._recorder.load(os.fspath(path), _C._device(device))


class SafetensorsRecorder(Recorder):
    """The native format, which other programs read too.

    >>> recorder = kiln.record.SafetensorsRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _format = _FORMATS.safetensors


class NamedMpkFileRecorder(Recorder):
    """MessagePack with named fields.

    >>> recorder = kiln.record.NamedMpkFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _format = _FORMATS.message_pack


class NamedMpkGzFileRecorder(NamedMpkFileRecorder):
    """The same, gzipped.

    >>> recorder = kiln.record.NamedMpkGzFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _gzip = True


class CborFileRecorder(Recorder):
    """CBOR.

    >>> recorder = kiln.record.CborFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _format = _FORMATS.cbor


class PrettyJsonFileRecorder(Recorder):
    """JSON that people read: every number exactly, as decimal digits.

    >>> recorder = kiln.record.PrettyJsonFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _format = _FORMATS.pretty_json


class JsonFileRecorder(Recorder):
    """JSON on one line.

    >>> recorder = kiln.record.JsonFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _format = _FORMATS.json


class JsonGzFileRecorder(JsonFileRecorder):
    """The same, gzipped.

    >>> recorder = kiln.record.JsonGzFileRecorder()
    >>> nn.Linear(2, 1).save_file("net", recorder)
    >>> _ = nn.Linear(2, 1).load_file("net", recorder)
    """

    _gzip = True


class NamedMpkBytesRecorder:
    """MessagePack in memory.

    >>> recorder = kiln.record.NamedMpkBytesRecorder()
    >>> data = recorder.record(nn.Linear(2, 1).into_record())
    >>> isinstance(data, bytes)
    True
    """

    def __init__(self, settings: Any = FullPrecisionSettings) -> None:
        self.settings = settings

    def record(self, record: Record) -> bytes:
        """The record as bytes."""
        return _C._record_to_bytes(record, self.settings)

    def load(self, data: bytes, device: DeviceLike = "cpu") -> Record:
        """The record in bytes. IoError when they are none."""
        return _C._record_from_bytes(bytes(data), _C._device(device))


__all__ = [
    "CborFileRecorder",
    "DoublePrecisionSettings",
    "FullPrecisionSettings",
    "HalfPrecisionSettings",
    "JsonFileRecorder",
    "JsonGzFileRecorder",
    "NamedMpkBytesRecorder",
    "NamedMpkFileRecorder",
    "NamedMpkGzFileRecorder",
    "PrecisionSettings",
    "PrettyJsonFileRecorder",
    "Record",
    "RecordItem",
    "Recorder",
    "SafetensorsRecorder",
]
