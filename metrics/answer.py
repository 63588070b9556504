"""What windows and counters read of one scored answer. A score record (consumer) is one; nothing here knows Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Score(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def probability(self) -> float: ...


class Missing(Protocol):
    @property
    def reason(self) -> str: ...

    @property
    def probability(self) -> float: ...


class Answer(Protocol):
    """Probabilities are inclusion probabilities in (0, 1]; the weight of a value is 1 / its probability."""

    @property
    def id(self) -> str: ...

    @property
    def trace_id(self) -> str | None: ...

    @property
    def probability(self) -> float: ...

    @property
    def scores(self) -> Mapping[str, Score]: ...

    @property
    def unscored(self) -> Mapping[str, Missing]: ...

    @property
    def definitions(self) -> Mapping[str, str]: ...

    @property
    def versions(self) -> Mapping[str, str]: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def statements(self) -> Mapping[str, int]: ...

    @property
    def refusal(self) -> bool: ...

    @property
    def flags(self) -> Sequence[str]: ...

    @property
    def fault(self) -> str: ...

    @property
    def conflicts(self) -> int: ...

    @property
    def evasive(self) -> bool: ...


Segment = tuple[str, ...]
"""Segment label values, in the order of the segment keys."""

Key = tuple[Segment, str, str]
"""(segment, metric, definition): what a series is about."""

OTHER = "other"
"""A label value that is not on the allow-list."""
ALL = "all"
"""In place of a segment's label value: whatever it is."""


def flagged_weight(answer: Answer) -> float:
    """What a flagged answer counts among the flagged: 1 / the inclusion probability of the score that flags it.

    A metric that a budget thins flags fewer answers, each of which then stands for more; where several scores flag one
    answer, the one that is there most often would have flagged it anyway. A flag that rests on no score of its own (a
    conflict, an injection) was seen by the judge, whose metrics are the rarest.
    """
    flagging = []
    for flag in answer.flags:
        score = answer.scores.get(flag.removesuffix("_low"))
        if score is not None:
            flagging.append(score.probability)
        else:
            flagging.append(min((s.probability for s in answer.scores.values()), default=answer.probability))
    return 1.0 / max(flagging, default=answer.probability)
