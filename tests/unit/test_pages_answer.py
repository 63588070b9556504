"""Where the scores of one case stand: beside their thresholds, in the baseline, and among the answers of late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consumer.pages.answer import ScoreView, case_view
from consumer.record import MetricScore, MetricUnscored
from metrics.baseline import Baseline, distribution_of
from metrics.drift import Sample
from metrics.ranges import SHARE
from metrics.rolling import Spans
from tests.case_files import case_file
from tests.score_records import DEFINITIONS

KEYS = ("app", "lang")
HERE = ("helpdesk", "en")


def spans(segment: tuple[str, ...], definition: str) -> Spans:
    masses = np.zeros(SHARE.bins)
    masses[-1], masses[0] = 80.0, 20.0
    return Spans(segment, "faithfulness", definition, "24h", Sample(masses, 50, 40.0), None)


def scores(baseline: Baseline | None, *known: Spans) -> dict[str, ScoreView]:
    case = case_file(1, 0.0)
    found = case.record.scores | {"strange": MetricScore(7.0, 1.0)}
    record = replace(case.record, scores=found, unscored={"answer_relevance": MetricUnscored("judge_timeout", 1.0)})
    view = case_view(replace(case, record=record), list(known), KEYS, baseline, "")
    return {score.metric: score for score in view.scores}


def baseline(definition: str) -> Baseline:
    values = [1.0] * 90 + [0.0] * 10
    distribution = distribution_of("faithfulness", definition, HERE, values)
    return Baseline(0.0, KEYS, {"faithfulness": definition}, {}, (distribution,))


def test_a_score_stands_in_the_baseline_and_among_those_of_late() -> None:
    definition = DEFINITIONS["faithfulness"]
    found = scores(baseline(definition), spans(HERE, definition))["faithfulness"]
    assert found.below
    assert found.stands == [
        "higher than 10% of the 100 validated answers of the baseline",
        "higher than 20% of this segment's 50 answers in the last 24h",
    ]
    assert found.chart is not None
    assert "higher than 10%" in found.chart


def test_another_definition_or_segment_is_no_yardstick() -> None:
    strangers = (spans(HERE, "another"), spans(("shop", "en"), DEFINITIONS["faithfulness"]))
    found = scores(baseline("another"), *strangers)["faithfulness"]
    assert found.stands == []
    assert found.chart is None


def test_what_has_no_value_says_why_and_what_cannot_be_is_not_drawn() -> None:
    found = scores(None)
    assert found["answer_relevance"].value is None
    assert found["answer_relevance"].reason == "judge_timeout"
    assert found["strange"].chart is None
    assert next(iter(found)) == "faithfulness"


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_score_at_the_edge_of_its_range_has_its_place(value: float) -> None:
    case = case_file(1, 0.0)
    record = replace(case.record, scores={"faithfulness": MetricScore(value, 1.0)})
    known = [spans(HERE, DEFINITIONS["faithfulness"])]
    (found,) = case_view(replace(case, record=record), known, KEYS, None, "").scores
    assert found.stands
    assert found.below == (value < 0.75)
