"""What was measured in each epoch of a run."""

from __future__ import annotations

from typing import Any

from .pictures import CELL, cell, escaped, plots

__all__ = ["History"]

MOST_ROWS = 50


class History(list[dict[str, Any]]):
    """A list with a dict for each epoch, which a notebook shows as a table and plots.

    The keys are "epoch", "lr", "seconds" and the metrics by split, such as "valid/loss".

    >>> history = kiln.train.History([{"epoch": 1, "train/loss": 0.5}])
    >>> history
    [{'epoch': 1, 'train/loss': 0.5}]
    >>> "<table" in history._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        if not self:
            return "<div>no epoch is over yet</div>"
        names = list(dict.fromkeys(name for row in self for name in row))
        head = "".join(f'<th scope="col" style="{CELL}">{escaped(name)}</th>' for name in names)
        body = []
        for row in self[-MOST_ROWS:]:
            cells = (
                f'<td style="{CELL}">{escaped(row[name])}</td>'
                if name == "epoch" and name in row
                else cell(row.get(name), name)
                for name in names
            )
            body.append(f'<tr style="background:none">{"".join(cells)}</tr>')
        left = len(self) - len(body)
        more = f"<div>The first {left} of {len(self)} epochs are left out of the table.</div>"
        return (
            '<div class="kiln-history"><div style="max-height:24em;overflow:auto">'
            '<table style="border-collapse:collapse;margin:6px 0">'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
            f"{more if left else ''}{plots(self)}</div>"
        )
