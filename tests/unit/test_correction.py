"""The corrected score: unbiased though the judge is biased, with an interval that holds, and moved by audits alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.label import Label, LabelChange, Verdict, label_of
from consumer.record import MetricScore
from metrics.correction import MINIMUM, LabelledScore, Rectifier, corrected, rectifier
from metrics.interval import Interval
from metrics.label_book import MOST
from tests.case_files import audited
from tests.labelled_traffic import JUDGES, Drawn, draw, estimate, labelled_of
from tests.score_records import DEFINITIONS, score_record
from tests.unit.exposition_harness import ALL, EN, NOW, Board

DAY = 86_400.0
ONE_HOUR = {"metric": "faithfulness", "window": "1h"}
RUNS = 300


@pytest.mark.parametrize(
    ("judge", "design", "share", "labels"),
    [
        ("fair", "uniform", 0.95, 60),
        ("fair", "stratified", 0.7, 60),
        ("lenient", "uniform", 0.95, 60),
        ("lenient", "stratified", 0.7, 60),
        ("strict", "stratified", 0.7, 60),
        ("blind", "uniform", 0.95, 60),
        ("lenient", "stratified", 0.95, 300),
    ],
)
def test_95_means_95_whatever_the_judge_gets_wrong(judge: str, design: str, share: float, labels: int) -> None:
    """300 windows a cell: three standard errors of a coverage of 93 % are 0.044. In full: tests/bench/statistics.py."""
    rng = np.random.default_rng([20261130, *map(ord, judge + design), labels, int(share * 100)])
    held, found, raw = 0, [], []
    for _ in range(RUNS):
        window = draw(share, JUDGES[judge], design, 600, rng)
        mean, interval = estimate(window)
        by = rectifier(labelled_of(draw(share, JUDGES[judge], design, labels, rng)))
        assert by is not None
        answer = corrected(mean, interval, by)
        assert 0.0 <= answer.low <= answer.mean <= answer.high <= 1.0
        held += answer.low <= share <= answer.high
        found.append(mean + by.mean)
        raw.append(mean)
    assert held / RUNS >= 0.93 - 0.044
    assert abs(np.mean(found) - share) <= max(0.003, 3 * np.std(found) / np.sqrt(RUNS))
    assert judge == "strict" or abs(np.mean(raw) - share) > 0.004  # the judge is biased


def test_too_few_labels_correct_nothing() -> None:
    one = LabelledScore(1.0, True, 0.01)
    assert rectifier([one] * (MINIMUM - 1)) is None
    by = rectifier([one] * MINIMUM)
    assert by is not None
    assert by.mean == 0.0
    assert by.low < -0.02  # that 50 of 50 agree does not promise that all do


def test_weights_are_by_inclusion_and_audit() -> None:
    """Of the rare ones each stands for ten."""
    rare = [LabelledScore(1.0, False, 0.001)] * 30
    common = [LabelledScore(1.0, True, 0.01)] * 300
    by = rectifier([*rare, *common])
    assert by is not None
    assert by.mean == pytest.approx(-0.5)
    scaled = rectifier([replace(one, probability=one.probability * 1e-90) for one in (*rare, *common)])
    assert scaled is not None
    assert (scaled.mean, scaled.low) == (pytest.approx(by.mean), pytest.approx(by.low))


scores = st.tuples(st.floats(0, 1), st.booleans(), st.floats(5e-324, 1.0))


@settings(max_examples=30, deadline=None)
@given(st.lists(scores, min_size=MINIMUM, max_size=MINIMUM + 20), st.floats(0, 1), st.floats(0, 1))
def test_it_never_leaves_its_range_and_has_a_width(
    given_scores: list[tuple[float, bool, float]], mean: float, width: float
) -> None:
    by = rectifier([LabelledScore(*one) for one in given_scores])
    assert by is not None
    assert -1.0 <= by.low <= by.mean + 1e-9
    assert by.mean - 1e-9 <= by.high <= 1.0
    answer = corrected(mean, Interval(max(0.0, mean - width), min(1.0, mean + width)), by)
    assert 0.0 <= answer.low <= answer.mean <= answer.high <= 1.0
    assert answer.high - answer.low > 0.0


def test_a_sum_beyond_the_range_is_its_end() -> None:
    answer = corrected(0.98, Interval(0.97, 0.99), Rectifier(60, 0.05, 0.02, 0.08))
    assert answer.mean == answer.high == 1.0
    assert answer.low == pytest.approx(1.0 - np.hypot(0.01, 0.03))


def label(number: int, verdict: Verdict, score: float, **changes: Any) -> Label:
    case = audited(
        number,
        changes.pop("event_time", NOW - DAY),
        record={"scores": {"faithfulness": MetricScore(score, 0.5)}, "segment": changes.pop("segment", EN)},
    )
    return replace(label_of(case, verdict, by="anna", note="", now=NOW), **changes)


def board() -> Board:
    """A thousand answers of faithfulness 0.9 in each of two segments."""
    found = Board()
    for number in range(1000):
        segment = EN if number % 2 else {"app": "helpdesk", "lang": "zh"}
        found.count(score_record(number, NOW - 10, {"faithfulness": 0.9}, segment=segment, probability=0.5))
    return found


def take(found: Board, *labels: Label) -> set[str]:
    return {found.book.take_label(LabelChange(one.id, one)) for one in labels}


def test_labels_correct_the_gauges_of_their_segment_and_of_all() -> None:
    found = board()
    assert take(found, *(label(n, "good" if n % 5 else "bad", 0.9) for n in range(49))) == {"corrects"}
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) is None
    assert found.value("correction_labels", metric="faithfulness", **EN) == 49
    take(found, *(label(n, "good" if n % 5 else "bad", 0.9) for n in range(49, 60)))
    for segment in (EN, ALL):
        assert found.value("rolling_score_corrected", **ONE_HOUR, **segment) == pytest.approx(0.8)
        low = found.value("rolling_score_corrected_low", **ONE_HOUR, **segment)
        high = found.value("rolling_score_corrected_high", **ONE_HOUR, **segment)
        assert low is not None
        assert high is not None
        assert 0.65 < low < 0.75 < 0.85 < high < 0.92
    # The other segment has no labels of its own, and other metrics are not corrected.
    assert found.value("rolling_score_corrected", **ONE_HOUR, app="helpdesk", lang="zh") is None
    assert found.value("rolling_score_corrected", metric="topic_similarity", window="1h", **ALL) is None
    # The raw one stands as it was.
    assert found.value("rolling_score", **ONE_HOUR, **ALL) == pytest.approx(0.9)

    # All segments together: each label by what it stands for.
    zh = {"app": "helpdesk", "lang": "zh"}
    take(found, *(label(n, "bad", 0.9, segment=zh) for n in range(100, 160)))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) == pytest.approx(0.4)
    assert found.value("rolling_score_corrected", **ONE_HOUR, **zh) == pytest.approx(0.0, abs=1e-9)
    assert found.value("correction_labels", metric="faithfulness", **ALL) == 120
    # A label is replaced, taken away, grows old.
    take(found, *(label(n, "good", 0.9, segment=zh) for n in range(100, 160)))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **zh) == pytest.approx(1.0)
    for n in range(100, 111):
        assert found.book.take_label(LabelChange(f"evt-{n}", None)) == "taken_away"
    assert found.value("rolling_score_corrected", **ONE_HOUR, **zh) is None
    found.now += 30 * DAY
    assert found.value("correction_labels", metric="faithfulness", **ALL) is None


def test_what_was_not_audited_or_means_something_else_leaves_it_unmoved() -> None:
    found = board()
    take(found, *(label(n, "good" if n % 5 else "bad", 0.9) for n in range(60)))
    before = found.value("rolling_score_corrected", **ONE_HOUR, **ALL)
    assert before == pytest.approx(0.8)
    flagged = [label(n, "bad", 0.9, why=("flagged",), audit_probability=None) for n in range(1000, 1300)]
    assert take(found, *flagged) == {"not_audited"}
    assert take(found, *(label(n, "bad", 0.9, run="backfill") for n in range(2000, 2100))) == {"other_run"}
    assert take(found, *(label(n, "bad", 0.9, event_time=NOW - 31 * DAY) for n in range(3000, 3100))) == {"old"}
    other = {"faithfulness": "ffffffff"}
    assert take(found, *(label(n, "bad", 0.1, definitions=other) for n in range(4000, 4100))) == {"corrects"}
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) == before
    # One and the same answer, labelled anew as a flagged one of another content, corrects no more.
    take(found, *(label(n, "bad", 0.9, why=("flagged",), audit_probability=None) for n in range(60)))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) is None


def test_whoever_labels_only_what_was_flagged_corrects_nothing() -> None:
    """A twentieth of the traffic is flagged. Audited answers that were flagged are labelled, and others are not."""
    found = Board()
    for number in range(1000):
        flags = ("faithfulness_low",) if number % 20 == 0 else ()
        found.count(score_record(number, NOW - 10, {"faithfulness": 0.9}, segment=EN, flags=flags))
    take(found, *(label(n, "bad", 0.5, flags=("faithfulness_low",)) for n in range(60)))
    assert found.value("correction_labels", metric="faithfulness", **ALL) == 60
    assert found.value("correction_labels_flagged_ratio", metric="faithfulness", **ALL) == 1.0
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) is None
    # Once the others are labelled too, it is a fair sample.
    take(found, *(label(n, "good", 0.9) for n in range(100, 400)))
    assert found.value("correction_labels_flagged_ratio", metric="faithfulness", **ALL) == pytest.approx(1 / 6)
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) is not None


def test_a_new_definition_waits_for_labels_of_its_own() -> None:
    found = board()
    take(found, *(label(n, "good", 0.9) for n in range(60)))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) == pytest.approx(1.0)
    newer = DEFINITIONS | {"faithfulness": "ffffffff"}
    found.now += 60
    found.count(score_record(5000, found.now, {"faithfulness": 0.7}, segment=EN, definitions=newer))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) is None
    take(found, *(label(n, "bad", 0.5, definitions={"faithfulness": "ffffffff"}) for n in range(100, 150)))
    assert found.value("rolling_score_corrected", **ONE_HOUR, **ALL) == pytest.approx(0.2)


def test_memory_is_bounded() -> None:
    found = board()
    one = label(0, "good", 0.9)
    for number in range(MOST + MOST // 10 + 1):
        found.book.take_label(LabelChange(str(number), replace(one, event_time=NOW - DAY + number)))
    assert found.value("correction_labels", metric="faithfulness", **ALL) == MOST
    # The latest answers stay.
    found.now = NOW - DAY + MOST // 10 + 29.5 * DAY
    assert found.value("correction_labels", metric="faithfulness", **ALL) == MOST


def test_drawn_traffic_is_what_it_says() -> None:
    drawn: Drawn = draw(0.7, JUDGES["fair"], "stratified", 200_000, np.random.default_rng(3))
    weights = 1 / drawn.probability
    assert (weights * drawn.good).sum() / weights.sum() == pytest.approx(0.7, abs=0.01)
    assert drawn.good.mean() < 0.6
