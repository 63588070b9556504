"""Small charts as inline SVG: no script draws them, and what they show also stands beside them in numbers."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from metrics.courses import Point
from metrics.ranges import Range

WIDTH, HEIGHT = 160, 40
FEW = 5
_PAD = 3.0


def course(points: Sequence[Point], low: float, high: float, threshold: float | None, label: str) -> Markup:
    """The rolling score over time: its interval as a band, its mean as a line (a dot where it has no neighbour), and
    the threshold as a dashed line. `low` and `high`: the values at the lower and the upper edge."""
    step = WIDTH / max(len(points), 1)

    def x(at: int) -> float:
        return step * (at + 0.5)

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return HEIGHT - _PAD - share * (HEIGHT - 2 * _PAD)

    parts = []
    if threshold is not None and low <= threshold <= high:
        parts.append(f'<line class="threshold" x1="0" x2="{WIDTH}" y1="{y(threshold):.1f}" y2="{y(threshold):.1f}"/>')
    for run in _runs(points):
        upper = [f"{x(at):.1f},{y(point.high or 0.0):.1f}" for at, point in run]
        lower = [f"{x(at):.1f},{y(point.low or 0.0):.1f}" for at, point in reversed(run)]
        line = [f"{x(at):.1f},{y(point.mean or 0.0):.1f}" for at, point in run]
        if len(run) == 1:
            at, point = run[0]
            parts.append(
                f'<line class="bar" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{y(point.high or 0.0):.1f}" '
                f'y2="{y(point.low or 0.0):.1f}"/>'
            )
            parts.append(f'<circle class="dot" cx="{x(at):.1f}" cy="{y(point.mean or 0.0):.1f}" r="2"/>')
        else:
            parts.append(f'<polygon class="band" points="{" ".join(upper + lower)}"/>')
            parts.append(f'<polyline class="line" points="{" ".join(line)}"/>')
    return _svg("course", parts, label)


def bounds(points: Sequence[Point], threshold: float | None, range_: Range) -> tuple[float, float]:
    """Values at the edges of a chart: what is in it and a little more, at least a fifth of the range. The interval of a
    point with few answers may reach beyond them."""
    known = [p for p in points if p.samples >= FEW] or points
    values = [p.mean for p in points if p.mean is not None]
    values += [v for p in known for v in (p.low, p.high) if v is not None]
    values += [] if threshold is None else [threshold]
    if not values:
        return range_.low, range_.high
    low, high = min(values), max(values)
    missing = max(0.2 * (range_.high - range_.low) - (high - low), 0.0)
    low, high = low - missing / 2 - 0.01, high + missing / 2 + 0.01
    if high > range_.high:
        low, high = low - (high - range_.high), range_.high
    return max(low, range_.low), high


def distribution(
    histogram: Sequence[float], range_: Range, value: float, threshold: float | None, label: str
) -> Markup:
    """How the scores of others are distributed, and where this one stands (a line with a triangle on its top).
    `histogram`: weights of the bins of `range_`."""
    edges = range_.edges
    filled = [i for i, weight in enumerate(histogram) if weight > 0]
    low = min([value, *([] if threshold is None else [threshold]), *(edges[i] for i in filled[:1])])
    high = max([value, *([] if threshold is None else [threshold]), *(edges[i + 1] for i in filled[-1:])])
    room = max(0.05 * (high - low), 0.02)
    low, high = low - room, high + room
    most = max(histogram, default=0.0) or 1.0
    base, top = HEIGHT - 2.0, 9.0

    def x(at: float) -> float:
        return (at - low) / (high - low) * WIDTH

    parts = []
    for i in filled:
        # Bins below 0 are five times as wide: the area counts, not the height.
        height = histogram[i] / most * (base - top) * min(1.0, 0.02 / (edges[i + 1] - edges[i]))
        parts.append(
            f'<rect class="bin" x="{x(edges[i]):.1f}" y="{base - max(height, 0.7):.1f}" '
            f'width="{max(x(edges[i + 1]) - x(edges[i]) - 0.4, 0.6):.1f}" height="{max(height, 0.7):.1f}"/>'
        )
    if threshold is not None:
        parts.append(
            f'<line class="threshold" x1="{x(threshold):.1f}" x2="{x(threshold):.1f}" y1="{top}" y2="{base}"/>'
        )
    at = x(value)
    parts.append(f'<line class="here" x1="{at:.1f}" x2="{at:.1f}" y1="7" y2="{base}"/>')
    parts.append(f'<polygon class="here" points="{at - 4:.1f},0 {at + 4:.1f},0 {at:.1f},7"/>')
    parts.append(f'<line class="axis" x1="0" x2="{WIDTH}" y1="{base}" y2="{base}"/>')
    return _svg("distribution", parts, label)


def share_below(histogram: Sequence[float], range_: Range, value: float) -> float | None:
    """The weighted share of scores in bins wholly below that of `value`: the lowest score is above nobody. None without
    any."""
    total = sum(histogram)
    if total <= 0:
        return None
    bin_ = range_.bin_of(value)
    return float(sum(histogram[:bin_]) / total)


def _runs(points: Sequence[Point]) -> list[list[tuple[int, Point]]]:
    """Points without a gap between them."""
    runs: list[list[tuple[int, Point]]] = []
    for at, point in enumerate(points):
        if point.mean is None:
            continue
        if runs and runs[-1][-1][0] == at - 1:
            runs[-1].append((at, point))
        else:
            runs.append([(at, point)])
    return runs


def _svg(kind: str, parts: Sequence[str], label: str) -> Markup:
    drawn = Markup("".join(parts))
    return Markup(
        '<svg class="chart {}" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}" '
        'preserveAspectRatio="none">{}</svg>'
    ).format(kind, WIDTH, HEIGHT, WIDTH, HEIGHT, label, drawn)
