"""The baseline: how the scores of a validated set are distributed, by metric, definition and segment, and which
thresholds were set from them. One JSON file, written by `groundwatch calibrate` (docs/baselines.md).

It holds no text: numbers, and small random projections of embeddings (`metrics.sketch`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson

from metrics.answer import ALL, Segment
from metrics.ranges import range_of
from metrics.sketch import DIMENSION, decode_sketch

VERSION = 1
QUANTILES = 100
"""A distribution keeps its quantiles at 0, 1/100, ..., 1: so many steps."""
SKETCHES_KEPT = 512
"""Of one part and segment, at most; which ones is decided by hash, so the same set gives the same baseline."""

Part = Literal["question", "context"]
Method = Literal["false_alarms", "balanced", "f1", "precision", "recall"]
_METHODS = ("false_alarms", "balanced", "f1", "precision", "recall")


class BaselineError(Exception):
    """The file holds no baseline that can be used; one line that says why."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The scores of one metric under one definition in one segment of the validated set.

    `segment` has one value per segment key, `all` where it is open. `histogram` counts the bins of
    `metrics.ranges.range_of(metric)`, as the rolling windows do. `quantiles` are the values at 0, 0.01, ..., 1
    (101 of them, linear interpolation), the first being the smallest value. `spread` is the sample standard deviation
    (n - 1), 0 where n is 1.
    """

    metric: str
    definition: str
    segment: Segment
    n: int
    mean: float
    spread: float
    histogram: tuple[int, ...]
    quantiles: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The value below which about `share` (in [0, 1]) of the scores lie."""
        return float(np.interp(share * QUANTILES, np.arange(QUANTILES + 1), self.quantiles))


@dataclass(frozen=True, slots=True)
class Sketches:
    """Sketches of the questions, or of the contexts, of one segment. `embedder` is the identity of the model they come
    from: sketches of another one must not be compared with them. `n` events had one, of which `sample` are kept."""

    part: Part
    embedder: str
    segment: Segment
    n: int
    sample: tuple[str, ...]

    def points(self) -> npt.NDArray[np.float32]:
        """The kept sketches, shape (len(sample), 32)."""
        if not self.sample:
            return np.empty((0, DIMENSION), np.float32)
        return np.stack([decode_sketch(encoded) for encoded in self.sample])


@dataclass(frozen=True, slots=True)
class Operating:
    """What a threshold does on the set that it was set from. Shares are in [0, 1]; None without bad examples.

    `false_alarms`: share of the good answers that are flagged, with its 95 % interval. `recall`: share of the bad ones
    that are flagged. `precision`: share of bad ones among the flagged, at `bad_share`, the share of bad answers that
    was assumed, with one false alarm more than was seen. `held_out_recall`, `held_out_false_alarms`: the same where
    each tenth of the set is flagged by a threshold that was set on the others.
    """

    n_good: int
    n_bad: int
    false_alarms: float
    false_alarms_low: float
    false_alarms_high: float
    recall: float | None = None
    precision: float | None = None
    bad_share: float | None = None
    auroc: float | None = None
    held_out_recall: float | None = None
    held_out_false_alarms: float | None = None


@dataclass(frozen=True, slots=True)
class BaselineThreshold:
    """A score below `value` (by more than 0.001) is flagged. `target` belongs to `method`: the share of false alarms,
    the precision or the recall that was asked for; None for `balanced` and `f1`."""

    metric: str
    definition: str
    segment: Segment
    value: float
    method: Method
    target: float | None
    operating: Operating


@dataclass(frozen=True, slots=True)
class Baseline:
    """`created` in seconds since the epoch (UTC). `segment_keys`: what the values of a segment stand for.

    `definitions`: by metric, the one that was scored (a metric without a value in the whole set is there too).
    `versions`: embedder, judge and groundwatch, as in score records. `source`: where it comes from, for people.
    """

    created: float
    segment_keys: tuple[str, ...]
    definitions: Mapping[str, str]
    versions: Mapping[str, str]
    distributions: tuple[Distribution, ...]
    sketches: tuple[Sketches, ...] = ()
    thresholds: tuple[BaselineThreshold, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)

    def distribution(
        self, metric: str, definition: str, labels: Mapping[str, str], minimum: int = 1
    ) -> Distribution | None:
        """The most specific distribution that fits a segment (label values by segment key) and has `minimum` scores.

        `labels` may leave keys out or hold `all`; then only distributions that are open there fit. Of two equally
        specific ones the one that fixes a later segment key wins.
        """
        fitting = [
            d
            for d in self.distributions
            if d.metric == metric and d.definition == definition and d.n >= minimum and self._fits(d.segment, labels)
        ]
        return max(fitting, key=lambda d: specificity(d.segment), default=None)

    def sketches_of(self, part: Part, embedder: str, labels: Mapping[str, str], minimum: int = 1) -> Sketches | None:
        """As `distribution`, for sketches of which at least `minimum` are kept."""
        fitting = [
            s
            for s in self.sketches
            if s.part == part and s.embedder == embedder and len(s.sample) >= minimum and self._fits(s.segment, labels)
        ]
        return max(fitting, key=lambda s: specificity(s.segment), default=None)

    def conditions(self, segment: Segment) -> dict[str, str]:
        """The label values that a segment fixes, by segment key; empty for the whole set."""
        return {key: value for key, value in zip(self.segment_keys, segment, strict=True) if value != ALL}

    def _fits(self, segment: Segment, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key, ALL) == value for key, value in self.conditions(segment).items())


def specificity(segment: Segment) -> tuple[int, tuple[bool, ...]]:
    """Sorts segments from the whole set to a single combination; of equally many fixed values, later keys win."""
    fixed = tuple(value != ALL for value in segment)
    return sum(fixed), fixed[::-1]


def distribution_of(metric: str, definition: str, segment: Segment, values: Sequence[float]) -> Distribution:
    """The distribution of `values`, which must not be empty and must lie in the metric's range."""
    scores = np.asarray(values, np.float64)
    range_ = range_of(metric)
    histogram = np.bincount([range_.bin_of(float(value)) for value in scores], minlength=range_.bins)
    return Distribution(
        metric=metric,
        definition=definition,
        segment=segment,
        n=len(scores),
        mean=float(scores.mean()),
        spread=float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        histogram=tuple(int(count) for count in histogram),
        quantiles=tuple(float(q) for q in np.quantile(scores, np.linspace(0.0, 1.0, QUANTILES + 1))),
    )


def encode_baseline(baseline: Baseline) -> bytes:
    """The baseline as JSON, indented, ending in a newline. A number that is not finite is a fault of the caller."""
    created = datetime.fromtimestamp(baseline.created, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return orjson.dumps(
        {"v": VERSION} | asdict(baseline) | {"created": created}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    )


def decode_baseline(raw: bytes) -> Baseline:
    """Read what `encode_baseline` wrote; unknown fields are ignored.

    Raises:
        BaselineError: not a baseline, one of a later version, or numbers that cannot be.
    """
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BaselineError(f"not JSON: {error}") from None
    if not isinstance(data, dict) or "distributions" not in data:
        raise BaselineError("not a baseline: give a file that `groundwatch calibrate` wrote")
    version = data.get("v", VERSION)
    if type(version) is not int or version > VERSION:
        raise BaselineError(f"version {version!r}; this groundwatch reads up to {VERSION}, so upgrade it")
    try:
        return _baseline(data)
    except KeyError as error:
        raise BaselineError(f"the field {error} is missing") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise BaselineError(str(error)) from None


def _baseline(data: dict[str, Any]) -> Baseline:
    keys = _texts(data["segment_keys"])
    baseline = Baseline(
        created=datetime.fromisoformat(data["created"]).timestamp(),
        segment_keys=keys,
        definitions=_named(data["definitions"]),
        versions=_named(data["versions"]),
        distributions=tuple(_distribution(d) for d in data["distributions"]),
        sketches=tuple(_sketches(s) for s in data.get("sketches", ())),
        thresholds=tuple(_threshold(t) for t in data.get("thresholds", ())),
        source=_named(data.get("source", {})),
    )
    segments = [d.segment for d in baseline.distributions]
    segments += [s.segment for s in baseline.sketches] + [t.segment for t in baseline.thresholds]
    for segment in segments:
        if len(segment) != len(keys):
            raise ValueError(f"a segment has {len(segment)} values, but there are {len(keys)} segment_keys")
    return baseline


def _distribution(data: dict[str, Any]) -> Distribution:
    found = Distribution(
        metric=_text(data["metric"]),
        definition=_text(data["definition"]),
        segment=_texts(data["segment"]),
        n=_count(data["n"]),
        mean=_number(data["mean"]),
        spread=_number(data["spread"]),
        histogram=tuple(_count(count) for count in data["histogram"]),
        quantiles=tuple(_number(value) for value in data["quantiles"]),
    )
    range_ = range_of(found.metric)
    if len(found.histogram) != range_.bins or sum(found.histogram) != found.n:
        raise ValueError(f"{found.metric}: the histogram must have {range_.bins} bins and sum to n = {found.n}")
    if len(found.quantiles) != QUANTILES + 1 or list(found.quantiles) != sorted(found.quantiles):
        raise ValueError(f"{found.metric}: {QUANTILES + 1} quantiles in ascending order are expected")
    if found.n == 0 or not all(range_.holds(value) for value in (found.mean, *found.quantiles)):
        raise ValueError(f"{found.metric}: an empty distribution, or values outside [{range_.low}, {range_.high}]")
    return found


def _sketches(data: dict[str, Any]) -> Sketches:
    part = data["part"]
    if part not in ("question", "context"):
        raise ValueError(f"sketches are of question or context, not of {part!r}")
    found = Sketches(part, _text(data["embedder"]), _texts(data["segment"]), _count(data["n"]), _texts(data["sample"]))
    if not np.isfinite(found.points()).all():
        raise ValueError(f"a {part} sketch is not finite")
    return found


def _threshold(data: dict[str, Any]) -> BaselineThreshold:
    operating = data["operating"]
    found = BaselineThreshold(
        metric=_text(data["metric"]),
        definition=_text(data["definition"]),
        segment=_texts(data["segment"]),
        value=_number(data["value"]),
        method=data["method"],
        target=_perhaps(data["target"]),
        operating=Operating(
            n_good=_count(operating["n_good"]),
            n_bad=_count(operating["n_bad"]),
            false_alarms=_number(operating["false_alarms"]),
            false_alarms_low=_number(operating["false_alarms_low"]),
            false_alarms_high=_number(operating["false_alarms_high"]),
            recall=_perhaps(operating.get("recall")),
            precision=_perhaps(operating.get("precision")),
            bad_share=_perhaps(operating.get("bad_share")),
            auroc=_perhaps(operating.get("auroc")),
            held_out_recall=_perhaps(operating.get("held_out_recall")),
            held_out_false_alarms=_perhaps(operating.get("held_out_false_alarms")),
        ),
    )
    if found.method not in _METHODS:
        raise ValueError(f"{found.metric}: no method {found.method!r}; there are {', '.join(_METHODS)}")
    range_ = range_of(found.metric)
    if not range_.holds(found.value):
        raise ValueError(f"{found.metric}: threshold {found.value} is outside [{range_.low}, {range_.high}]")
    return found


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"text is expected, not {value!r}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if type(values) is not list:
        raise TypeError(f"a list is expected, not {values!r}")
    return tuple(_text(value) for value in values)


def _named(values: Any) -> dict[str, str]:
    if type(values) is not dict:
        raise TypeError(f"an object is expected, not {values!r}")
    return {name: _text(value) for name, value in values.items()}


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"a number is expected, not {value!r}")
    return float(value)


def _perhaps(value: Any) -> float | None:
    return None if value is None else _number(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"a count is expected, not {value!r}")
    return value
