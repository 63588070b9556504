"""A flag counts with the inclusion probability of the score that raised it (invariant 11)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from consumer.record import CountedRecord, MetricScore, MetricUnscored, decode_counted, encode_record
from metrics.answer import flagged_weight
from metrics.counting import Counting
from metrics.rolling import Rolling
from tests.score_records import score_record

NOW = 1_760_000_000.0
SEGMENT = ("helpdesk", "en")


def record(
    number: int, scores: dict[str, MetricScore], flags: tuple[str, ...], budgeted: bool = False, **more: object
) -> CountedRecord:
    unscored = {"faithfulness": MetricUnscored("budget", 1.0)} if budgeted else {}
    made = score_record(number, NOW, {}, flags=flags, **more)
    return decode_counted(encode_record(replace(made, scores=scores, unscored=unscored)))


def test_the_flagged_share_is_right_though_a_budget_thins_the_judge() -> None:
    """30 % of answers are unfaithful, 10 % off topic, some both; the judge sees one in ten."""
    generator = random.Random(3)
    rolling, counting = Rolling({"1h": 3600.0}, [SEGMENT]), Counting([SEGMENT], [])
    truth, events, share = 0, 30_000, 0.1
    for number in range(events):
        unfaithful, off_topic = generator.random() < 0.3, generator.random() < 0.1
        truth += unfaithful or off_topic
        seen = generator.random() < share
        scores = {"topic_similarity": MetricScore(0.1 if off_topic else 0.9, 1.0)}
        flags = ["topic_similarity_low"] if off_topic else []
        if seen:
            scores["faithfulness"] = MetricScore(0.0 if unfaithful else 1.0, share)
            flags += ["faithfulness_low"] if unfaithful else []
        one = record(number, scores, tuple(flags), budgeted=not seen)
        rolling.add(one, SEGMENT, NOW, NOW)
        counting.add(one, SEGMENT, {}, NOW)
    (shares,) = [s for s in rolling.read(NOW)[1] if s.segment == SEGMENT]
    assert shares.flagged == pytest.approx(truth / events, abs=0.015)
    counts = counting.segments[SEGMENT]
    assert counts.flagged_weight / counts.answers_weight == pytest.approx(truth / events, abs=0.015)


def test_a_flag_without_a_score_of_its_own_counts_as_the_judges() -> None:
    scores = {"topic_similarity": MetricScore(0.9, 0.5), "faithfulness": MetricScore(1.0, 0.05)}
    assert flagged_weight(record(1, scores, ("context_conflict",))) == pytest.approx(20)
    assert flagged_weight(record(1, scores, ("topic_similarity_low", "context_conflict"))) == pytest.approx(2)
    assert flagged_weight(record(1, {}, ("suspected_injection",), probability=0.5)) == pytest.approx(2)


def test_conflicts_and_evasive_answers_are_counted() -> None:
    counting = Counting([SEGMENT], [])
    counting.add(record(1, {}, (), conflicts=2, evasive=True), SEGMENT, {}, NOW)
    counting.add(record(2, {}, ()), SEGMENT, {}, NOW)
    counts = counting.segments[SEGMENT]
    assert (counts.conflicts, counts.evasive) == (2, 1)
