"""What moved? How much of the change of a mean between two spans of time each label explains.

For one dimension (model, language, ...) the change of the weighted mean is the sum of what changed *within* its values
and of what came of a changed *mix* of them (Kitagawa, JASA 50, 1955; shares and means are averaged over both spans).
Values that appear or vanish have no change of their own. Where some appear and others vanish they are one row: the new
in place of the old. Where there is only one of the two, the row is compared with the rest of the traffic of that span.

A value explains something only where it moved otherwise than the rest did: if everything falls by as much, no label
is the reason. So what is tested of a value is its change less that of all others (a difference of differences). All
tests of one contrast are held together to 5 % (Holm, Scandinavian Journal of Statistics 6, 1979), so that of a hundred
contrasts of noise about five name anything. Intervals of differences are made from those of the means (MOVER: Zou and
Donner, Statistics in Medicine 27, 2008); that of a mix by linearised variance. Shares are taken as they were seen.

Only sums are kept, no scores: some 10 numbers for each value of each dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from metrics.contrast_sums import SpanSums, added, sum_of
from metrics.interval import Moments
from metrics.mean_differences import Cell, Test, difference_test, holm, linear_test

LEAST_EFFECTIVE = 10.0
"""Effective scores that a value needs in each span to be looked at on its own; rarer values are taken together."""
APPEARED = 20.0
"""A value whose share grew by this factor or more is new, one whose share fell by it is gone."""
LEAST_MISSED = 5.0
"""... if at least so many scores would be expected where there are none (nearly)."""
LEVEL = 0.05
MAX_LISTED = 8


class Kind(Enum):
    WITHIN = "within"
    REPLACED = "replaced"
    APPEARED = "appeared"
    VANISHED = "vanished"
    MIX = "mix"


class Verdict(Enum):
    EXPLAINS = "explains"
    """It moved as the whole did, and otherwise than the rest."""
    AGAINST = "against"
    """It moved otherwise than the rest, but not the way the whole went."""
    NOISE = "noise"
    """Within what chance does."""
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Side:
    """One span of time, or a part of its traffic. `share`: of the traffic that the scores stand for (by weight);
    `effective`: Kish's n; `mean` is None without scores."""

    n: int
    effective: float
    share: float
    mean: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """One row of a contrast. `part` is what it adds to the change: the parts of one dimension add up to the whole.

    `size`, with its 95 % interval: what of the change would not be there if it had gone as the rest did. `p` is of
    that, `adjusted` holds for all rows together. All are None where there are too few scores.
    `values`: which, the most frequent first (`MAX_LISTED` at most); `gone`: what they replaced. Of a mix: the values
    whose share moved most, and both sides are those of the first of them.
    """

    dimension: str
    kind: Kind
    values: tuple[str, ...]
    gone: tuple[str, ...]
    before: Side
    after: Side
    part: float
    size: float | None
    low: float | None
    high: float | None
    p: float | None
    adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Contrast:
    """The change of the mean with its 95 % interval, and what it is made of."""

    before: Side
    after: Side
    change: float
    low: float
    high: float
    parts: tuple[Part, ...]

    @property
    def named(self) -> tuple[Part, ...]:
        """What explains the change, the largest first."""
        found = [part for part in self.parts if part.verdict is Verdict.EXPLAINS]
        return tuple(sorted(found, key=lambda part: -abs(part.size or 0.0)))

    @property
    def real(self) -> bool:
        """The change is more than noise."""
        return self.low > 0.0 or self.high < 0.0


def contrast(before: SpanSums, after: SpanSums, low: float, high: float) -> Contrast:
    """What explains the change of the mean from one span to the other; [low, high] is the metric's range.

    Raises:
        ValueError: a span without a score.
    """
    if not before.n or not after.n:
        raise ValueError("there must be scores in both spans")
    whole = _Value(("",), before.moments, after.moments, 1.0, 1.0)
    test = difference_test([(1.0, Cell(after.moments, low, high)), (-1.0, Cell(before.moments, low, high))])
    found = []
    for dimension in dict.fromkeys((*before.dimensions, *after.dimensions)):
        found += _Dimension(dimension, before, after, low, high).rows()
    tested = [test for _, test in found if test is not None]
    adjusted = iter(holm([test.p for test in tested]))
    parts = tuple(part if test is None else _judged(part, test, next(adjusted), whole.delta) for part, test in found)
    return Contrast(whole.before, whole.after, whole.delta, test.low, test.high, parts)


def _judged(part: Part, test: Test, adjusted: float, change: float) -> Part:
    verdict = Verdict.NOISE
    if adjusted <= LEVEL:
        verdict = Verdict.EXPLAINS if test.size * change > 0.0 else Verdict.AGAINST
    return replace(part, size=test.size, low=test.low, high=test.high, p=test.p, adjusted=adjusted, verdict=verdict)


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of a dimension, or several taken together, with its shares of the traffic `p` before and `q` after."""

    names: tuple[str, ...]
    first: Moments
    second: Moments
    p: float
    q: float
    gone: tuple[str, ...] = ()

    @property
    def before(self) -> Side:
        return _side(self.first, self.p)

    @property
    def after(self) -> Side:
        return _side(self.second, self.q)

    @property
    def delta(self) -> float:
        """The change of its mean; 0 where it has none on one side."""
        return self.second.mean - self.first.mean if self.first.n and self.second.n else 0.0

    @property
    def middle(self) -> float:
        """Its mean, averaged over both spans as far as it is there."""
        means = [each.mean for each in (self.first, self.second) if each.n]
        return sum(means) / len(means)

    @property
    def share(self) -> float:
        return (self.p + self.q) / 2.0

    @property
    def enough(self) -> bool:
        return min(_effective(self.first), _effective(self.second)) >= LEAST_EFFECTIVE


class _Dimension:
    """The rows of one dimension."""

    def __init__(self, name: str, before: SpanSums, after: SpanSums, low: float, high: float) -> None:
        self._name = name
        self._low, self._high = low, high
        held, kept = before.values(name), after.values(name)
        w0, w1 = before.moments.w, after.moments.w
        names = sorted({*held, *kept}, key=lambda v: -(_w(held, v) / w0 + _w(kept, v) / w1))
        new, gone, rare = [], [], []
        self._common: list[_Value] = []

        def together(chosen: Sequence[str], names: Sequence[str] = (), replaced: Sequence[str] = ()) -> _Value:
            first, second = sum_of(held, chosen), sum_of(kept, chosen)
            return _Value(tuple(names or chosen), first, second, first.w / w0, second.w / w1, tuple(replaced))

        def many(moments: Moments) -> bool:
            return _effective(moments) >= LEAST_EFFECTIVE

        for value in names:
            one = together([value])
            if one.p * APPEARED <= one.q and one.q * before.moments.kish >= LEAST_MISSED and many(one.second):
                new.append(value)
            elif one.q * APPEARED <= one.p and one.p * after.moments.kish >= LEAST_MISSED and many(one.first):
                gone.append(value)
            elif one.enough:
                self._common.append(one)
            else:
                rare.append(value)
        if rare:
            self._common.append(together(rare))
        self._appeared = self._vanished = None
        if new and gone:
            self._common.append(together([*new, *gone], new, gone))
        elif new:
            self._appeared = together(new)
        elif gone:
            self._vanished = together(gone)

    def rows(self) -> list[tuple[Part, Test | None]]:
        """Each with its test, where there are scores enough; none where the dimension has one value only."""
        common, rows = self._common, []
        values = sum(len(value.names) + len(value.gone) for value in common)
        if values + (self._appeared is not None) + (self._vanished is not None) < 2:
            return []
        kept = {True: 1.0, False: 1.0}
        if self._appeared is not None and common:
            rows.append(self._against_rest(self._appeared, Kind.APPEARED, [v.second for v in common]))
            kept[True] = 1.0 - self._appeared.q
        if self._vanished is not None and common:
            rows.append(self._against_rest(self._vanished, Kind.VANISHED, [v.first for v in common]))
            kept[False] = 1.0 - self._vanished.p
        common = [replace(value, p=value.p / kept[False], q=value.q / kept[True]) for value in common]
        for value in common:
            rows.append(self._within(value, [other for other in common if other is not value]))
        if len(common) > 1:
            rows.append(self._mix(common))
        return rows

    def _against_rest(self, value: _Value, kind: Kind, others: Sequence[Moments]) -> tuple[Part, Test | None]:
        """A value that is there in one span only, beside the rest of the traffic of that span."""
        appeared = kind is Kind.APPEARED
        own, share = (value.second, value.q) if appeared else (value.first, -value.p)
        rest = added(others)
        test = None
        if rest.n and _effective(rest) >= LEAST_EFFECTIVE:
            test = difference_test([(share, self._cell(own)), (-share, self._cell(rest))])
        part = share * (own.mean - rest.mean) if rest.n else 0.0
        return self._part(kind, value, part), test

    def _within(self, value: _Value, others: Sequence[_Value]) -> tuple[Part, Test | None]:
        kind = Kind.REPLACED if value.gone else Kind.WITHIN
        part = self._part(kind, value, value.share * value.delta)
        rest = [other for other in others if other.first.n and other.second.n]
        known = sum(other.share for other in rest)
        if (
            not value.enough
            or not (others or value.gone)
            or (others and known < 0.5 * sum(other.share for other in others))
        ):
            return part, None
        if others and min(_effective(added([o.first for o in rest])), _effective(added([o.second for o in rest]))) < (
            LEAST_EFFECTIVE
        ):
            return part, None
        share = value.share
        cells = [(share, self._cell(value.second)), (-share, self._cell(value.first))]
        beside = []
        for other in rest:
            weight = share * other.share / known
            beside += [(-weight, self._cell(other.second)), (weight, self._cell(other.first))]
        return part, difference_test(cells, beside)

    def _mix(self, values: Sequence[_Value]) -> tuple[Part, Test | None]:
        """How much the mean moved because the values' shares of the traffic did."""
        size = sum((value.q - value.p) * value.middle for value in values)
        variance = 0.0
        for after in (False, True):
            centre = sum((v.q if after else v.p) * v.middle for v in values)
            total = sum((v.second if after else v.first).w for v in values)
            for v in values:
                own, share = (v.second, v.q) if after else (v.first, v.p)
                if own.n:
                    both = v.first.n and v.second.n
                    slope = (v.q - v.p) / (2.0 if both else 1.0) / share
                    variance += _squares(own, (v.middle - centre) * (1.0 if after else -1.0), slope) / (total * total)
        moved = sorted(values, key=lambda v: -abs(v.q - v.p))
        largest = replace(moved[0], names=tuple(name for v in moved for name in v.names))
        enough = all(
            _effective(added([v.second if after else v.first for v in values])) >= 2 * LEAST_EFFECTIVE
            for after in (False, True)
        )
        return self._part(Kind.MIX, largest, size), linear_test(size, variance) if enough else None

    def _part(self, kind: Kind, value: _Value, part: float) -> Part:
        return Part(
            self._name, kind, value.names[:MAX_LISTED], value.gone[:MAX_LISTED], value.before, value.after, part,
            None, None, None, None, None, Verdict.TOO_FEW,
        )  # fmt: skip

    def _cell(self, moments: Moments) -> Cell:
        return Cell(moments, self._low, self._high)


def _squares(own: Moments, shift: float, slope: float) -> float:
    """Σ w² (shift + slope (s - mean))² over the scores behind `own`."""
    assert own.w2s is not None
    assert own.w2s2 is not None
    mean = own.mean
    first = own.w2s - mean * own.w2
    second = own.w2s2 - 2.0 * mean * own.w2s + mean * mean * own.w2
    return shift * shift * own.w2 + 2.0 * shift * slope * first + slope * slope * max(second, 0.0)


def _side(moments: Moments, share: float) -> Side:
    return Side(int(moments.n), _effective(moments), share, moments.mean if moments.n else None)


def _effective(moments: Moments) -> float:
    return moments.kish if moments.n else 0.0


def _w(held: Mapping[str, list[float]], value: str) -> float:
    return held[value][1] if value in held else 0.0
