"""One sequential detector: has the level of one score changed, in one segment?

Two CUSUMs (Page, Biometrika 41, 1954), for a fall and for a rise, over the weighted stream: each score gives
(w / mean w) (score - reference) less an allowance. The reference follows the time of day (`metrics.reference`), and so
does the allowance (`metrics.allowance`): shares scatter more the lower their mean is. The alarm levels come from the
expected time between false alarms (`metrics.run_length`).

No single answer is a change: what one answer pulls is winsorised (cut at `MOST_PULL`), the alarm levels are those of
pulls so cut, and `LEAST_ANSWERS` must have pulled the same way since the start before a change is told.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from metrics.allowance import Allowance, by_level, even
from metrics.reference import Curve, Reference
from metrics.run_length import threshold

Array = npt.NDArray[np.float64]

ALLOWANCE = 0.375
"""Of a standard deviation of the scores: half of the change that is found soonest."""
UNCERTAINTY = 0.7
"""How much of the standard error of what was learnt (reference and scatter) the alarm levels allow for. Not all of it:
where the reference is off, there is one false alarm, and the level is learnt anew."""
MARGIN = 1.05
"""The alarm levels are for so many times the expected time: rare scores of great weight are known badly from `KEPT`."""
MOST_PULL = 3.0
"""Of a standard deviation of the pulls: so far one answer moves a sum at most, whatever its weight and score."""
LEAST_ANSWERS = 5
"""A change is told on so many answers that pulled its way since its start, not on fewer."""
LEAST_SAMPLES = 200
"""Scores that must be known before anything is called a change."""
RHYTHM_SECONDS = 1.5 * 86_400.0
"""Scores over so long tell the rhythm of the day."""
KEPT = 2048
"""The latest scores, from which their distribution is known."""
MANY_FRESH = 3000.0
REFRESH_SECONDS = 300.0
"""A detector that knows a lot sets its alarm levels anew after so many scores and so long, whichever is later."""
CASES = 5
LEAST_SPREAD = 0.01
"""Of the metric's range: scores that are all but equal are given this standard deviation."""


class Case(NamedTuple):
    """One answer that contributed to a change. `part`: its share of the CUSUM, in units of the score."""

    part: float
    id: str
    trace_id: str | None
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of level. Times are seconds since the epoch: of the first score after the CUSUM was last 0, and of the
    score with which it was found. `before`: the reference over that time; `after`: the weighted mean over it.
    `cases`: those that contributed most, the largest first."""

    start: float
    found: float
    before: float
    after: float
    samples: int
    cases: tuple[Case, ...]

    @property
    def size(self) -> float:
        return self.after - self.before


class Scores:
    """Some scores of one series in the order in which they came."""

    __slots__ = ("answers", "times", "values", "weights")

    def __init__(self) -> None:
        self.times = array("d")
        self.values = array("d")
        self.weights = array("d")
        self.answers: list[tuple[str, str | None]] = []

    def __len__(self) -> int:
        return len(self.times)

    def extend(self, other: Scores) -> None:
        self.times.extend(other.times)
        self.values.extend(other.values)
        self.weights.extend(other.weights)
        self.answers.extend(other.answers)

    def in_time(self) -> Scores:
        """The same scores by their times; those of one time stay as they came."""
        order = sorted(range(len(self)), key=self.times.__getitem__)
        ordered = Scores()
        for one, other in ((self.times, ordered.times), (self.values, ordered.values), (self.weights, ordered.weights)):
            other.extend(one[at] for at in order)
        ordered.answers = [self.answers[at] for at in order]
        return ordered

    def table(self) -> Array:
        """Times, values and weights, shape (3, n)."""
        return np.array([self.times, self.values, self.weights], np.float64)


@dataclass(slots=True)
class _Sum:
    """One CUSUM, and what is known since it was last 0. `sign` is -1 for a fall."""

    sign: float
    level: float = 0.0
    limit: float = math.inf
    allowance: Allowance = field(default_factory=lambda: even(0.0))
    start: float = math.nan
    samples: int = 0
    pulling: int = 0
    """How many of the samples pulled its way."""
    weight: float = 0.0
    scores: float = 0.0
    expected: float = 0.0
    cases: tuple[Case, ...] = ()

    def clear(self) -> None:
        self.level, self.start, self.samples, self.pulling = 0.0, math.nan, 0, 0
        self.weight = self.scores = self.expected = 0.0
        self.cases = ()


class Detector:
    """`take` for live scores, `learn` for those that an earlier process counted. After a change it first learns the new
    level, and finds nothing meanwhile."""

    __slots__ = (
        "_centre", "_curve", "_down", "_fresh", "_kept", "_low", "_most", "_reference", "_refreshed", "_span", "_up",
    )  # fmt: skip

    def __init__(self, low: float, high: float) -> None:
        """[low, high] is the metric's range."""
        self._low, self._span = low, high - low
        self._reference = Reference()
        self._kept = np.empty((3, 0))
        self._down, self._up = _Sum(-1.0), _Sum(1.0)
        self._curve: Curve | None = None
        self._most = math.inf
        self._centre = 0.0
        self._fresh = 0.0
        self._refreshed = -math.inf

    @property
    def armed(self) -> bool:
        """It knows enough to find a change."""
        return self._curve is not None

    @property
    def due(self) -> bool:
        """The next `take` will set the alarm levels anew, which takes some hundredths of a second."""
        known = self._reference.samples
        if known < LEAST_SAMPLES or self._curve is None:
            return known >= LEAST_SAMPLES
        if known / 5.0 < MANY_FRESH:
            return self._fresh >= max(50.0, known / 5.0)
        # It takes a tenth of a second, and a few minutes more of a busy stream change next to nothing.
        return self._fresh >= MANY_FRESH and self._reference.last - self._refreshed >= REFRESH_SECONDS

    def learn(self, scores: Scores) -> None:
        """Take scores into the reference, whatever their order; nothing is found in them."""
        self._absorb(scores.table())

    def take(self, scores: Scores, false_alarm_seconds: float) -> list[Shift]:
        """Take scores as they came, and say which changes they show (mostly none).

        `false_alarm_seconds`: the expected time between false alarms of this one detector.
        """
        found: list[Shift] = []
        table = scores.table()
        if self.due:
            self._refresh(false_alarm_seconds)
        begin = 0
        while self._curve is not None and begin < table.shape[1]:
            end = self._step(table, begin, scores.answers, found)
            self._absorb(table[:, begin:end])
            begin = end
        if begin < table.shape[1]:
            self._absorb(table[:, begin:])
        return found

    def _absorb(self, table: Array) -> None:
        self._reference.add(*table)
        self._fresh += table.shape[1]
        kept = np.concatenate([self._kept, table], axis=1)
        if kept.shape[1] > KEPT:
            kept = kept[:, np.argsort(kept[0], kind="stable")[-KEPT // 4 * 3 :]]
        self._kept = kept

    def _refresh(self, false_alarm_seconds: float) -> None:
        """Set allowances and alarm levels by what is known now."""
        reference = self._reference
        self._fresh, self._refreshed = 0.0, reference.last
        curve = reference.curve()
        times, values, weights = self._kept
        expected = curve.at(times)
        residuals = values - expected
        relative = weights / weights.mean()
        pulls = relative * (residuals - float((relative * residuals).mean()))
        least = LEAST_SPREAD * self._span
        self._most = MOST_PULL * max(float(pulls.std()), least)
        pulls = np.clip(pulls, -self._most, self._most)
        # Where scores are skewed, their mean is not 0 any more when they were cut.
        self._centre = float(pulls.mean())
        pulls -= self._centre
        spread = math.sqrt(float((pulls * pulls / relative).mean()))
        usual = ALLOWANCE * max(spread, least)
        error = math.sqrt(curve.variance) * max(float(pulls.std()), least)
        error = UNCERTAINTY * math.hypot(error, usual * _variance_error(pulls))
        arl = max(MARGIN * 2.0 * false_alarm_seconds * reference.rate, 2.0)
        # Until the rhythm of the day is known, the curve is a guess at hours that were not seen yet.
        follows = self._low == 0.0 and self._span == 1.0 and spread >= least and reference.span >= RHYTHM_SECONDS
        for one in (self._down, self._up):
            one.allowance = even(usual)
            if follows:
                one.allowance = by_level(usual, one.sign, pulls, relative, expected, self._most, self._centre)
            if spread < least:
                one.limit = 12.0 * least
            else:
                one.limit = threshold(one.sign * pulls - one.allowance.at(expected), arl, error)
        self._curve = curve

    def _step(self, table: Array, begin: int, answers: Sequence[tuple[str, str | None]], found: list[Shift]) -> int:
        """Advance both sums over the scores from `begin` on, up to the first alarm; where that ends."""
        assert self._curve is not None
        times, values, weights = table[:, begin:]
        expected = self._curve.at(times)
        pulls = weights / self._reference.mean_weight * (values - expected)
        pulls = np.clip(pulls, -self._most, self._most) - self._centre
        paths = []
        end, alarm = len(times), None
        for one in (self._down, self._up):
            raw = one.level + np.cumsum(one.sign * pulls - one.allowance.at(expected))
            path = raw - np.minimum(np.minimum.accumulate(raw), 0.0)
            paths.append(path)
            first = _first_alarm(one, path, pulls)
            if first < end:
                end, alarm = first + 1, one
        for one, path in zip((self._down, self._up), paths, strict=True):
            _advance(one, path[:end], times, values, weights, expected, pulls, answers, begin)
        if alarm is not None:
            self._raise(alarm, float(times[end - 1]), found)
        return begin + end

    def _scatter(self, levels: Array, beside: Array) -> Array:
        """How much scores of these means scatter, beside those of the mean `beside`: the binomial law for shares; 1 for
        cosines, which follow no such law."""
        if self._low < 0.0:
            return np.ones(len(levels))
        first, second = (np.clip(each / self._span, 0.02, 0.98) for each in (levels, beside))
        return np.asarray(np.clip(np.sqrt(first * (1.0 - first) / (second * (1.0 - second))), 0.5, 2.0))

    def _raise(self, alarm: _Sum, at: float, found: list[Shift]) -> None:
        before, after = alarm.expected / alarm.weight, alarm.scores / alarm.weight
        found.append(Shift(alarm.start, at, before, after, alarm.samples, alarm.cases))
        size = after - before
        self._reference.restart(size, float(min(alarm.samples, LEAST_SAMPLES // 4)))
        if self._curve is not None:
            # What is known of the old level is told as it would be at the new one, its scatter too.
            expected = self._curve.at(self._kept[0])
            scatter = self._scatter(np.array([after]), np.array([before]))
            self._kept[1] = expected + size + (self._kept[1] - expected) * scatter
        self._curve = None
        self._down.clear()
        self._up.clear()


def _variance_error(values: Array) -> float:
    """Relative standard error of the variance of these values. A variance that is too low by a share x brings about as
    many false alarms as a mean that is off by x allowances."""
    squares = (values - values.mean()) ** 2
    variance = float(squares.mean())
    return float(squares.std()) / (variance * math.sqrt(len(values))) if variance > 0.0 else 0.0


def _first_alarm(one: _Sum, path: Array, pulls: Array) -> int:
    """Where this sum is over its level with enough answers behind it; len(path) where it never is."""
    over = path >= one.limit
    if not over.any():
        return len(path)
    # Of the answers up to each place, those before the latest 0 do not count.
    pulling = np.cumsum(one.sign * pulls > 0.0) + one.pulling
    zero = np.maximum.accumulate(np.where(path <= 0.0, pulling, 0))
    told = over & (pulling - zero >= LEAST_ANSWERS)
    return int(np.argmax(told)) if told.any() else len(path)


def _advance(
    one: _Sum,
    path: Array,
    times: Array,
    values: Array,
    weights: Array,
    expected: Array,
    pulls: Array,
    answers: Sequence[tuple[str, str | None]],
    begin: int,
) -> None:
    """Remember what happened since the sum was last 0; `path` is where it went."""
    if not len(path):
        return
    zeros = np.flatnonzero(path <= 0.0)
    since = 0
    if len(zeros):
        one.clear()
        since = int(zeros[-1]) + 1
    one.level = float(path[-1])
    if since == len(path):
        return
    if math.isnan(one.start):
        one.start = float(times[since])
    part = slice(since, len(path))
    one.samples += len(path) - since
    one.weight += float(weights[part].sum())
    one.scores += float((weights[part] * values[part]).sum())
    one.expected += float((weights[part] * expected[part]).sum())
    contributions = one.sign * pulls[part]
    one.pulling += int((contributions > 0.0).sum())
    cases = list(one.cases)
    for place in np.lexsort((-one.sign * values[part], -contributions))[:CASES]:
        number = since + int(place)
        if contributions[place] > 0.0:
            name, trace_id = answers[begin + number]
            cases.append(Case(float(contributions[place]), name, trace_id, float(values[number]), float(times[number])))
    # Of parts that were cut to the same, the worst score first.
    one.cases = tuple(heapq.nlargest(CASES, cases, key=lambda case: (case.part, one.sign * case.value)))
