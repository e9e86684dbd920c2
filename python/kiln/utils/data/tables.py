"""Data sets over tables: CSV, JSON Lines, SQLite, Parquet and Arrow.

All are read once, into a tensor for each column of numbers and a list for any other. A row that does not
fit is an error that names file, row and column; with errors="skip" it is left out and counted.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ... import _C
from ... import errors as kiln_errors
from .dataset import Dataset, is_plain, row_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..._typing import StrPath

__all__ = [
    "ArrowDataset",
    "CSVDataset",
    "JSONLinesDataset",
    "ParquetDataset",
    "SQLiteDataset",
    "TableDataset",
]

_TYPES = (bool, int, float, str, list, dict, bytes)
_WORDS = {"true": True, "false": False, "1": True, "0": False}


class BadRow(Exception):
    """What is wrong with a row: (where, what)."""


def check_policy(op: str, policy: str) -> None:
    if policy not in ("raise", "skip"):
        raise kiln_errors.ValueError(f"{op}: errors must be 'raise' or 'skip'; got {policy!r}")


def file_name(op: str, path: StrPath) -> str:
    """The path as text. A file that is missing is an error."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise kiln_errors.FileNotFoundError(f"{op}: there is no file {os.fsdecode(name)!r}")
    return name


class TableDataset(Dataset[Any]):
    """Sample i is row i.

    A dict by column; with target, (features, target): the features are one float32 tensor of all columns,
    or of those named, and the target is what its column holds. skipped: how many rows were left out.

    >>> table = kiln.utils.data.TableDataset({"x": kiln.tensor([1, 2]), "name": ["a", "b"]})
    >>> table[1]
    {'x': 2, 'name': 'b'}
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        features: Sequence[str] | None = None,
        target: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        skipped: int = 0,
    ) -> None:
        op = type(self).__name__
        self.columns = columns
        self.skipped = skipped
        self.transform = transform
        self.target = target
        self._length = len(next(iter(columns.values()))) if columns else 0
        for name in [*(features or []), *([] if target is None else [target])]:
            if name not in columns:
                raise kiln_errors.KeyError(f"{op}: no column {name!r}; there are {', '.join(columns)}")
        if features is not None and target is None:
            raise kiln_errors.ValueError(f"{op}: features need a target beside them")
        self.features = None
        if target is not None:
            names = [n for n in columns if n != target] if features is None else list(features)
            texts = [n for n in names if not isinstance(columns[n], _C.Tensor)]
            if texts or not names:
                raise kiln_errors.TypeError(
                    f"{op}: features must be columns of numbers; got {', '.join(texts) or 'none'}"
                )
            self.features = _C.stack([columns[n].to(_C.float32) for n in names], 1)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if not -self._length <= index < self._length:
            raise kiln_errors.IndexError(
                f"{type(self).__name__}: index {index} is out of range for {self._length} samples"
            )
        if self.features is None:
            sample: Any = {name: _value(column, index) for name, column in self.columns.items()}
        else:
            sample = self.features[index], _value(self.columns[self.target], index)  # type: ignore[index]
        return sample if self.transform is None else self.transform(sample)

    def _gathered(self, indices: Any, seeds: Any = None) -> Any:
        if self.features is None or self.transform is not None or not is_plain(self, TableDataset):
            return None
        rows = row_numbers(indices, self._length)
        target = None if self.target is None else self.columns[self.target]
        if rows is None or not isinstance(target, _C.Tensor):
            return None
        return [self.features.index_select(0, rows), target.index_select(0, rows)]


def _value(column, index):
    return column[index].item() if isinstance(column, _C.Tensor) else column[index]


class _Builder:
    """Columns from rows."""

    def __init__(self, op, path, types, policy):
        self.op, self.path, self.policy = op, os.fsdecode(path), policy
        self.types = dict(types or {})
        for name, kind in self.types.items():
            if kind not in _TYPES:
                raise kiln_errors.TypeError(
                    f"{op}: the type of column {name!r} must be one of bool, int, float, str, list,"
                    f" dict, bytes; got {kind!r}"
                )
        self.given = set(self.types)
        self.columns = None
        self.skipped = 0

    def begin(self, names):
        for name in names:
            if names.count(name) > 1:
                raise self.error(1, f"column {name!r}", "the name occurs twice")
        for name in self.given - set(names):
            raise kiln_errors.KeyError(
                f"{self.op}: {self.path!r} has no column {name!r}; there are {', '.join(names)}"
            )
        self.columns = {name: [] for name in names}

    def error(self, row, where, what):
        place = f"row {row}" + (f", {where}" if where else "")
        return kiln_errors.ValueError(f"{self.op}: {self.path!r}, {place}: {what}")

    def reject(self, row, bad):
        if self.policy == "raise":
            raise self.error(row, *bad.args) from None
        self.skipped += 1

    def add(self, row, values, convert):
        """Adds a row, or none of it. convert(value, type or None) -> a value of the column's type."""
        try:
            if len(values) != len(self.columns):
                raise BadRow("", f"expected {len(self.columns)} values; got {len(values)}")
            out = []
            found = {}
            for name, value in zip(self.columns, values):
                kind = self.types.get(name)
                try:
                    value = convert(value, kind)
                    if kind is None:
                        found[name] = type(value)
                    elif kind is int and type(value) is float:
                        # Found whole numbers so far; not what the user said.
                        if name in self.given:
                            raise ValueError(f"expected an integer; got {value!r}")
                        found[name] = float
                    elif kind is float and type(value) is int:
                        value = float(value)
                    elif type(value) is not kind:
                        raise ValueError(f"expected {kind.__name__}; got {_short(value)}")
                except (ValueError, OverflowError) as e:
                    raise BadRow(f"column {name!r}", str(e)) from None
                if type(value) is int and not -(2**63) <= value < 2**63:
                    raise BadRow(f"column {name!r}", f"expected an integer of 64 bits; got {value}")
                out.append(value)
        except BadRow as bad:
            self.reject(row, bad)
            return
        self.types |= found
        for column, value in zip(self.columns.values(), out):
            column.append(value)

    def finish(self):
        dtypes = {bool: _C.bool_, int: _C.int64, float: _C.float64}
        return {
            name: _C.tensor(column, dtype=dtypes[self.types[name]])
            if self.types.get(name) in dtypes
            else column
            for name, column in (self.columns or {}).items()
        }


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _from_text(text, kind):
    """A field of a CSV file."""
    if any("\udc80" <= c <= "\udcff" for c in text):
        raise ValueError(f"the text is not in the file's encoding; got {text!a}")
    if kind is str:
        return text
    if not text.strip():
        raise ValueError("it is empty")
    if kind is bool:
        if text.strip().lower() not in _WORDS:
            raise ValueError(f"expected true or false; got {_short(text)}")
        return _WORDS[text.strip().lower()]
    for parse in (int, float):
        try:
            if "_" not in text:
                return parse(text)
        except ValueError:
            pass
    if kind is None:
        return text
    raise ValueError(f"expected a number; got {_short(text)}")


def _as_is(value, kind):
    """A value that has a type already."""
    if value is None:
        raise ValueError("it is missing")
    return bool(value) if kind is bool and value in (0, 1) else value


class CSVDataset(TableDataset):
    """The rows of a CSV file.

    types: bool, int, float or str by column; for others the first row decides between number and
    text. header: whether the first line has the names, or a list of them. Rows are numbered as the lines
    of the file. features, target, transform: see TableDataset.

    path: the file. delimiter, quotechar, encoding: of the text. errors: "raise" or "skip" a bad
    row.

    >>> with open("table.csv", "w") as file:
    ...     _ = file.write("x,y\\n1,a\\n2,b\\n")
    >>> kiln.utils.data.CSVDataset("table.csv")[1]
    {'x': 2, 'y': 'b'}
    """

    def __init__(
        self, path: StrPath, *, types: Mapping[str, type] | None = None,
        features: Sequence[str] | None = None, target: str | None = None,
        header: bool | Sequence[str] = True, delimiter: str = ",", quotechar: str = '"',
        encoding: str = "utf-8", errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        op = "CSVDataset"
        check_policy(op, errors)
        build = _Builder(op, file_name(op, path), types, errors)
        names = None if header is True else list(header or [])
        if _is_common(delimiter, quotechar, encoding, build.types):
            columns, skipped = _C._data.read_csv(
                op, path, {n: _CSV_TYPES[t] for n, t in build.types.items()}, delimiter,
                header is True, names or [], errors == "skip",
            )  # fmt: skip
            super().__init__(columns, features, target, transform, skipped)
            return
        with open(path, encoding=encoding, errors="surrogateescape", newline="") as file:
            if file.read(1) != "\ufeff":
                file.seek(0)
            rows = csv.reader(file, delimiter=delimiter, quotechar=quotechar, strict=True)
            while True:
                try:
                    values = next(rows)
                except StopIteration:
                    break
                except csv.Error as e:
                    build.reject(rows.line_num, BadRow("", str(e)))
                    continue
                if not values:
                    continue
                if build.columns is None:
                    build.begin(values if header is True else names or _numbered(values))
                    if header is True:
                        continue
                build.add(rows.line_num, values, _from_text)
        super().__init__(build.finish(), features, target, transform, build.skipped)


_CSV_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}


def _is_common(delimiter: Any, quotechar: Any, encoding: Any, types: dict[str, Any]) -> bool:
    """Whether C++ reads it: the same rows, many times as fast."""
    return (
        isinstance(delimiter, str)
        and len(delimiter) == 1
        and delimiter.isascii()
        and delimiter not in '"\r\n'
        and quotechar == '"'
        and str(encoding).lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
        and all(kind in _CSV_TYPES for kind in types.values())
    )


def _numbered(values):
    return [str(i) for i in range(len(values))]


class JSONLinesDataset(TableDataset):
    """The objects of a file with one on each line. The first one decides which columns there are.

    types: bool, int, float, str, list or dict by column; for others the first line decides.

    path: the file. features, target: samples are (features, target) instead of dicts. encoding: of
    the text. errors: "raise" or "skip" a bad row.

    >>> with open("table.jsonl", "w") as file:
    ...     _ = file.write('{"x": 1}\\n{"x": 2}\\n')
    >>> kiln.utils.data.JSONLinesDataset("table.jsonl")[1]
    {'x': 2}
    """

    def __init__(
        self, path: StrPath, *, types: Mapping[str, type] | None = None,
        features: Sequence[str] | None = None, target: str | None = None, encoding: str = "utf-8",
        errors: str = "raise", transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        op = "JSONLinesDataset"
        check_policy(op, errors)
        build = _Builder(op, file_name(op, path), types, errors)
        with open(path, "rb") as file:
            for row, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line.decode(encoding))
                    if not isinstance(value, dict):
                        raise BadRow("", f"expected an object; got {_short(value)}")
                    if build.columns is None:
                        build.begin(list(value))
                    for name in build.columns:
                        if name not in value:
                            raise BadRow(f"column {name!r}", "it is missing")
                except UnicodeDecodeError as e:
                    build.reject(row, BadRow(f"byte {e.start + 1}", f"the text is not {encoding}"))
                except (ValueError, RecursionError) as e:
                    build.reject(row, BadRow("", f"it is not JSON: {e}"))
                except BadRow as bad:
                    build.reject(row, bad)
                else:
                    build.add(row, [value[name] for name in build.columns], _as_is)
        super().__init__(build.finish(), features, target, transform, build.skipped)


class SQLiteDataset(TableDataset):
    """The rows that a query of an SQLite file gives, in the query's order. The file is only read.

    path: the file. parameters: of the query's question marks. types: what columns are, by name.
    features, target: samples are (features, target) instead of dicts. errors: "raise" or "skip" a
    bad row. transform: of each sample.

    >>> import sqlite3
    >>> with sqlite3.connect("table.db") as base:
    ...     _ = base.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2);")
    >>> kiln.utils.data.SQLiteDataset("table.db", "SELECT x FROM t ORDER BY x")[1]
    {'x': 2}
    """

    def __init__(
        self, path: StrPath, query: str, parameters: Any = (), *,
        types: Mapping[str, type] | None = None, features: Sequence[str] | None = None,
        target: str | None = None, errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        op = "SQLiteDataset"
        check_policy(op, errors)
        build = _Builder(op, file_name(op, path), types, errors)
        connection = None
        try:
            address = f"file:{quote(os.path.abspath(os.fsencode(path)))}?mode=ro"
            connection = sqlite3.connect(address, uri=True)
            rows = connection.execute(query, parameters)
            if rows.description is None:
                raise kiln_errors.ValueError(f"{op}: the query gives no rows; got {query!r}")
            build.begin([column[0] for column in rows.description])
            for row, values in enumerate(rows, 1):
                build.add(row, values, _as_is)
        except sqlite3.Error as e:
            raise kiln_errors.IoError(f"{op}: {build.path!r}: {e}; the query is {query!r}") from None
        finally:
            if connection is not None:
                connection.close()
        super().__init__(build.finish(), features, target, transform, build.skipped)


def _pyarrow(op, part):
    try:
        import importlib

        return importlib.import_module(f"pyarrow.{part}")
    except ImportError:
        raise kiln_errors.RuntimeError(
            f"{op}: this file format is read by pyarrow, which is not installed: pip install pyarrow"
        ) from None


def _whole_columns(table: Any, types: dict[str, Any]) -> dict[str, Any] | None:
    """The columns where no value is missing or of another type; None where one may be."""
    arrow = _pyarrow("ParquetDataset", "types")
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns):
        kind, wanted = column.type, types.get(name)
        if column.null_count:
            return None
        if arrow.is_integer(kind):
            if wanted not in (None, int, float) or str(kind) == "uint64":
                return None
            dtype = "int64" if wanted is not float else "float64"
        elif arrow.is_floating(kind):
            if wanted not in (None, float):
                return None
            dtype = "float64"
        elif arrow.is_boolean(kind):
            if wanted not in (None, bool):
                return None
            dtype = "bool"
        elif arrow.is_string(kind) or arrow.is_large_string(kind):
            if wanted not in (None, str):
                return None
            columns[name] = column.to_pylist()
            continue
        else:
            return None
        # A copy: Arrow's memory is not to be written.
        columns[name] = _C.from_numpy(column.to_numpy().astype(dtype, copy=True))
    return columns


class _Arrow(TableDataset):
    def _read(self, op, path, read, types, errors, features, target, transform):
        build = _Builder(op, file_name(op, path), types, errors)
        try:
            table = read(os.fspath(path))
        except (OSError, ValueError) as e:
            raise kiln_errors.IoError(f"{op}: {build.path!r}: {e}") from None
        build.begin(table.column_names)
        whole = _whole_columns(table, build.types)
        if whole is not None:
            super().__init__(whole, features, target, transform)
            return
        columns = [column.to_pylist() for column in table.columns]
        for row, values in enumerate(zip(*columns), 1):
            build.add(row, values, _as_is)
        super().__init__(build.finish(), features, target, transform, build.skipped)


class ParquetDataset(_Arrow):
    """The rows of a Parquet file, or of some columns of it. pyarrow must be installed.

    path: the file. types: what columns are, by name. features, target: samples are (features,
    target) instead of dicts. errors: "raise" or "skip" a bad row. transform: of each sample.

    >>> issubclass(kiln.utils.data.ParquetDataset, kiln.utils.data.TableDataset)
    True
    """

    def __init__(
        self, path: StrPath, *, columns: Sequence[str] | None = None,
        types: Mapping[str, type] | None = None, features: Sequence[str] | None = None,
        target: str | None = None, errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        check_policy("ParquetDataset", errors)
        parquet = _pyarrow("ParquetDataset", "parquet")
        self._read(
            "ParquetDataset", path, lambda name: parquet.read_table(name, columns=columns), types,
            errors, features, target, transform,
        )  # fmt: skip


class ArrowDataset(_Arrow):
    """The rows of an Arrow file (IPC, also called Feather). pyarrow must be installed.

    path: the file. columns: which. types: what columns are, by name. features, target: samples are
    (features, target) instead of dicts. errors: "raise" or "skip" a bad row. transform: of each
    sample.

    >>> issubclass(kiln.utils.data.ArrowDataset, kiln.utils.data.TableDataset)
    True
    """

    def __init__(
        self, path: StrPath, *, columns: Sequence[str] | None = None,
        types: Mapping[str, type] | None = None, features: Sequence[str] | None = None,
        target: str | None = None, errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        check_policy("ArrowDataset", errors)
        feather = _pyarrow("ArrowDataset", "feather")
        self._read(
            "ArrowDataset", path, lambda name: feather.read_table(name, columns=columns), types,
            errors, features, target, transform,
        )  # fmt: skip
