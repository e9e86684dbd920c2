"""Pieces of HTML for notebooks: escaped text, line plots as SVG, tables of numbers.

All styles stand in the elements, and no script runs: notebooks that are not trusted keep them. Text
and axes have the colour of the page around them; the lines' colours are readable on white and on black.
"""

from __future__ import annotations

import html
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Points = Sequence[tuple[float, float]]

COLORS = ("#3b82f6", "#c2690a", "#16a34a", "#a855f7", "#ef4444", "#0e93a8")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 300, 170
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 24, 22
MOST_POINTS = 300  # of a line
MOST_PLOTS = 12
CELL = "padding:2px 12px 2px 0;text-align:right;font-variant-numeric:tabular-nums"
NAME = "padding:2px 12px 2px 0;text-align:left;font-weight:normal"
NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: object) -> str:
    """A text that stands in HTML, in SVG and in an attribute as it is."""
    return html.escape(NO_XML.sub("\ufffd", str(text)))


def parts_of(name: str) -> tuple[str, str]:
    """(split, metric) of a name: "valid/loss" is ("valid", "loss"), "lr" is ("", "lr")."""
    split, slash, metric = name.partition("/")
    return (split, metric) if slash else ("", name)


def text_of(name: str, value: float) -> str:
    """A number by name, as the progress line shows it."""
    return f"{100 * value:.2f} %" if name.endswith("accuracy") else f"{value:.4g}"


def cell(value: object, name: str) -> str:
    """A number in a table: short to read, with all its digits in its title. Others as they are."""
    if not isinstance(value, (int, float)):
        return f'<td style="{CELL}">{"" if value is None else escaped(value)}</td>'
    shown = escaped(text_of(name, value))
    return f'<td style="{CELL}" title="{escaped(repr(float(value)))}">{shown}</td>'


def curves_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """metric -> split -> points (epoch, value) of a history; without what belongs to no split."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            split, metric = parts_of(name)
            if split and isinstance(value, (int, float)):
                lines = found.setdefault(metric, {})
                epoch = float(row.get("epoch", number))
                lines.setdefault(split, []).append((epoch, float(value)))
    return found


def thinned(points: Points) -> Points:
    """At most MOST_POINTS of them: the least and the largest of each stretch, so that peaks stay."""
    if len(points) <= MOST_POINTS:
        return points
    size = 2 * len(points) / MOST_POINTS
    kept: list[tuple[float, float]] = []
    for i in range(MOST_POINTS // 2):
        part = points[int(i * size) : int((i + 1) * size)]
        finite = [p for p in part if math.isfinite(p[1])] or part[:1]
        both = {min(finite, key=lambda p: p[1]), max(finite, key=lambda p: p[1])}
        kept += sorted(both)
    return kept


def ticks(low: float, high: float) -> list[float]:
    """Two to five round numbers within [low, high]."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    found = []
    while first * step <= high + step * 1e-9:
        found.append(first * step)
        first += 1
    return found


def _range(values):
    """What the axis spans; never nothing, and nothing that a float cannot hold."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    if high - low < 1e-9 * max(abs(low), abs(high)):
        margin = max(margin, abs(high) * 0.1)
    return low - margin, high + margin


def _paths(points, x, y):
    """The stretches of a line between numbers that are not finite."""
    stretches: list[list[str]] = [[]]
    for epoch, value in points:
        if math.isfinite(value):
            stretches[-1].append(f"{x(epoch):.1f},{y(value):.1f}")
        elif stretches[-1]:
            stretches.append([])
    return [s for s in stretches if s]


def plot(metric: str, lines: Mapping[str, Points]) -> str:
    """An SVG of a metric over the epochs, with a line for each split."""
    # Numbers near the end of what a float holds would overflow in the axis.
    lines = {s: [(e, v if abs(v) < 1e150 else math.nan) for e, v in p] for s, p in lines.items()}
    epochs = [e for points in lines.values() for e, _ in points]
    values = [v for points in lines.values() for _, v in points if math.isfinite(v)]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11"'
        f' fill="currentColor" style="max-width:100%"><title>{escaped(metric)} by epoch</title>',
        f'<text x="2" y="14" font-size="12" font-weight="bold">{escaped(_short(metric, 24))}</text>',
    ]
    names = [_short(split, 10) for split in lines]
    at = WIDTH - RIGHT - sum(26 + 6.2 * len(name) for name in names[:3]) + 8
    for i, (split, points) in enumerate(lines.items()):
        color, dash = COLORS[i % len(COLORS)], DASHES[i % len(DASHES)]
        stroke = f'stroke="{color}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")
        if i < 3:
            out.append(f'<line x1="{at:.0f}" x2="{at + 14:.0f}" y1="10" y2="10" {stroke}/>')
            out.append(f'<text x="{at + 17:.0f}" y="14">{escaped(names[i])}</text>')
            at += 26 + 6.2 * len(names[i])
    if not values:
        out.append(f'<text x="{LEFT}" y="{HEIGHT / 2:.0f}">no finite number yet</text></svg>')
        return "".join(out)
    low, high = _range(values)
    first, last = min(epochs), max(epochs)

    def x(epoch):
        share = (epoch - first) / (last - first) if last > first else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    for tick in ticks(low, high):
        out.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"'
            f' stroke="currentColor" stroke-opacity="0.2"/><text x="{LEFT - 5}" y="{y(tick) + 4:.1f}"'
            f' text-anchor="end">{tick:.5g}</text>'
        )
    for epoch, anchor in {first: "start", last: "end"}.items() if last > first else [(first, "middle")]:
        out.append(
            f'<text x="{x(epoch):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{epoch:.0f}</text>'
        )
    out.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{'epoch' if last > first else ''}</text>"
    )
    for i, points in enumerate(lines.values()):
        color, dash = COLORS[i % len(COLORS)], DASHES[i % len(DASHES)]
        pattern = f' stroke-dasharray="{dash}"' if dash else ""
        for stretch in _paths(thinned(points), x, y):
            if len(stretch) > 1:
                out.append(
                    f'<polyline fill="none" stroke="{color}" stroke-width="2"{pattern}'
                    f' points="{" ".join(stretch)}"/>'
                )
            cx, cy = stretch[-1].split(",")
            out.append(f'<circle cx="{cx}" cy="{cy}" r="3" fill="{color}"/>')
    out.append("</svg>")
    return "".join(out)


def _short(text, most):
    return text if len(text) <= most else text[: most - 1] + "…"


def plots(rows: Iterable[Mapping[str, Any]]) -> str:
    """The plots of a history's metrics, side by side where there is room."""
    curves = curves_of(rows)
    if not curves:
        return ""
    drawn = "".join(plot(metric, curves[metric]) for metric in list(curves)[:MOST_PLOTS])
    more = len(curves) - MOST_PLOTS
    rest = f"<div>{more} more metrics are in the table only.</div>" if more > 0 else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px;margin-top:8px">{drawn}</div>{rest}'


def values_table(columns: Mapping[str, Mapping[str, float]]) -> str:
    """A table with a row for each metric and a column for each split of split -> metric -> value."""
    metrics = list(dict.fromkeys(metric for values in columns.values() for metric in values))
    if not metrics:
        return ""
    head = "".join(f'<th scope="col" style="{CELL}">{escaped(split)}</th>' for split in columns)
    body = "".join(
        f'<tr style="background:none"><th scope="row" style="{NAME}">{escaped(metric)}</th>'
        + "".join(cell(values.get(metric), metric) for values in columns.values())
        + "</tr>"
        for metric in metrics
    )
    return (
        '<div style="max-height:24em;overflow:auto"><table style="border-collapse:collapse;margin:6px 0">'
        f'<thead><tr><th style="{NAME}"></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
