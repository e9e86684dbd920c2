"""The rows of a profile by PyTorch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import errors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Average(NamedTuple):
    """All calls of one op, by PyTorch's names; times are microseconds."""

    key: str
    count: int  # type: ignore[assignment]
    cpu_time_total: float
    device_time_total: float
    flops: int = 0  # of products, by their shapes

    @property
    def cpu_time(self) -> float:
        """Of one call."""
        return self.cpu_time_total / max(self.count, 1)

    @property
    def self_cpu_time_total(self) -> float:
        """The same as cpu_time_total: ops are listed, not what calls them."""
        return self.cpu_time_total


class Averages(list[Average]):
    """What profile.key_averages() gives: a list that prints as a table."""

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, **options: Any
    ) -> str:
        """The ops as text. sort_by: an attribute, such as "cpu_time_total" or "count"; row_limit: how
        many; options are PyTorch's, not looked at."""
        rows: Iterable[Average] = self
        if sort_by is not None:
            if not self or not hasattr(self[0], sort_by):
                known = "key, count, cpu_time_total, self_cpu_time_total, cpu_time, device_time_total"
                if self:
                    raise errors.ValueError(f"table: unknown sort_by {sort_by!r}; expected one of {known}")
            rows = sorted(self, key=lambda row: getattr(row, sort_by), reverse=sort_by != "key")
        width = max([len(row.key) for row in self] + [4])
        lines = [f"{'name':{width}}  {'calls':>8}  {'total us':>12}  {'us a call':>10}  {'device us':>10}"]
        for row in list(rows)[: row_limit if row_limit >= 0 else None]:
            lines.append(
                f"{row.key:{width}}  {row.count:8}  {row.cpu_time_total:12.1f}  {row.cpu_time:10.2f}  "
                f"{row.device_time_total:10.1f}"
            )
        return "\n".join(lines)
