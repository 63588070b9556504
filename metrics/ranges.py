"""The range of every metric, and how its values are binned.

The monitor knows metrics by the names in the score records only: a name that ends in `_similarity` is a cosine in
[-1, 1]; every other score is a share in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

SIMILARITY_SUFFIX = "_similarity"
SIMILARITIES = ("topic_similarity", "question_context_similarity", "question_answer_similarity")
"""What `metrics.similarity` scores; named here for whoever must not import what scores them."""
FAITHFUL_PROBABILITY = "faithful_probability"
EXPECTED_FAITHFULNESS = "expected_faithfulness"
"""What the modules of these names score; named here for the same reason."""


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval [low, high], the edges of its fine bins, and the upper bounds of its exported buckets.

    `below_zero` of the bins have width 0.1 and lie below 0; the others have width 0.02. `distance` says that counters
    and histograms take 1 - value: a counter must never go down, and a cosine may be negative.
    """

    low: float
    high: float
    below_zero: int
    distance: bool
    buckets: tuple[float, ...]

    @property
    def bins(self) -> int:
        return self.below_zero + 50

    @property
    def edges(self) -> tuple[float, ...]:
        """Ascending edges of the bins; one more than there are bins."""
        negative = (-1.0 + i / 10 for i in range(self.below_zero))
        return (*negative, *(i / 50 for i in range(51)))

    def bin_of(self, value: float) -> int:
        """The bin of a value inside the range: each bin holds its lower edge, the last one both of its edges."""
        if value < 0.0:
            return min(int((value + 1.0) * 10.0), self.below_zero - 1)
        return self.below_zero + int(value * 50.0) if value < 1.0 else self.bins - 1

    def holds(self, value: float) -> bool:
        """False for NaN and infinities too."""
        return self.low <= value <= self.high

    def counted(self, value: float) -> float:
        """What counters and histograms take: the value itself, or the distance 1 - value."""
        return 1.0 - value if self.distance else value


SHARE = Range(0.0, 1.0, 0, False, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
SIMILARITY = Range(-1.0, 1.0, 10, True, (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 2.0))


def range_of(metric: str) -> Range:
    return SIMILARITY if metric.endswith(SIMILARITY_SUFFIX) else SHARE


def counted_name(metric: str) -> str:
    """The `metric` label of counters and histograms: `topic_distance` for `topic_similarity`."""
    return metric.removesuffix(SIMILARITY_SUFFIX) + "_distance" if metric.endswith(SIMILARITY_SUFFIX) else metric
