"""Counts of what had no score, by reason and time."""

from __future__ import annotations

from consumer.record import MetricUnscored
from metrics.outcome import Kind
from metrics.unscored_seen import MOST_KEYS, SLOT_SECONDS, SLOTS, UnscoredSeen

HERE = ("helpdesk", "en")


def missing(reason: str, metric: str = "faithfulness") -> dict[str, MetricUnscored]:
    return {metric: MetricUnscored(reason, 1.0)}


def numbers(seen: UnscoredSeen, now: float, seconds: float) -> dict[str, int]:
    return {missed.reason: missed.number for missed in seen.read(now, seconds)}


def test_what_is_older_than_the_span_is_not_counted() -> None:
    seen = UnscoredSeen()
    now = 1000 * SLOT_SECONDS + 10
    for ago, reason in ((0, "no_claims"), (0, "no_claims"), (3600, "judge_timeout"), (4 * 3600, "shed")):
        seen.note(HERE, now - ago, missing(reason))
    assert numbers(seen, now, 600) == {"no_claims": 2}
    assert numbers(seen, now, 2 * 3600) == {"no_claims": 2, "judge_timeout": 1}
    assert numbers(seen, now, 86_400) == {"no_claims": 2, "judge_timeout": 1, "shed": 1}


def test_a_day_later_nothing_is_left_and_late_answers_still_count() -> None:
    seen = UnscoredSeen()
    begin = 1000 * SLOT_SECONDS
    seen.note(HERE, begin, missing("shed"))
    later = begin + SLOTS * SLOT_SECONDS
    seen.note(HERE, later, missing("shed"))
    assert numbers(seen, later, 86_400) == {"shed": 1}
    seen.note(HERE, later - SLOT_SECONDS, missing("shed"))
    seen.note(HERE, begin, missing("shed"))
    assert numbers(seen, later, 86_400) == {"shed": 2}
    assert numbers(seen, later + 3600, 1800) == {}


def test_kinds_are_those_of_the_reasons_and_the_unknown_is_a_failure() -> None:
    seen = UnscoredSeen()
    for reason in ("no_claims", "shed", "judge_timeout", "of_the_future"):
        seen.note(HERE, 0.0, missing(reason))
    kinds = {missed.reason: missed.kind for missed in seen.read(0.0, 300)}
    assert kinds == {
        "no_claims": Kind.NOT_APPLICABLE,
        "shed": Kind.THINNED,
        "judge_timeout": Kind.FAILED,
        "of_the_future": Kind.FAILED,
    }


def test_strange_names_are_left_out_and_there_is_an_end_to_them() -> None:
    seen = UnscoredSeen()
    seen.note(HERE, 0.0, missing("<b>"))
    seen.note(HERE, 0.0, missing("shed", "<b>"))
    for number in range(MOST_KEYS + 10):
        seen.note(HERE, 0.0, missing(f"reason_{number}"))
    assert len(seen.read(0.0, 300)) == MOST_KEYS
