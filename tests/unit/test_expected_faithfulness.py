"""Faithfulness with the judge's doubt in it: from the probabilities of the verdicts to flag and fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.embedders import build_evaluator
from consumer.judge_settings import Judge
from consumer.judged_metrics import JUDGED, beyond, scored
from consumer.settings import Settings
from consumer.settings_rules import METRICS
from metrics.evaluation import Evaluator
from metrics.event import Chunk, Event
from metrics.expected_faithfulness import NAME, ExpectedFaithfulness
from metrics.flags import FLAGGED_METRICS, Fault, Flag, fault_of, flags_of
from metrics.judge import Judgement, JudgeRequest, Label, Verdict
from metrics.metric import Text, Vector
from metrics.outcome import Reason, Scored, Unscored

ANSWER = "It opens at nine. Tickets cost five euros. Dogs are welcome."


@dataclass
class Doubting:
    """A judge that gives the statements these probabilities, and supports from 0.5 on."""

    probabilities: Sequence[float]
    name: str = "doubting"
    identity: str = "doubting/1"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        labels = [Label.SUPPORTED if p >= 0.5 else Label.NOT_FOUND for p in self.probabilities]
        pairs = zip(labels, self.probabilities, strict=True)
        verdicts = tuple(Verdict(label, "so", probability=p) for label, p in pairs)
        return [Judgement(verdicts) for _ in requests]


class NoVectors:
    identity = "none"
    dimension = 0

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        return [Unscored(Reason.NOT_CONFIGURED)] * len(texts)


def evaluator(*probabilities: float) -> Evaluator:
    judge = Doubting(probabilities)
    return Evaluator((), NoVectors(), sketches=False, judge=judge, of_verdicts=(ExpectedFaithfulness(),))


def event(answer: str = ANSWER, *chunks: str) -> Event:
    return Event("e", 0.0, "When does it open?", tuple(Chunk(text) for text in chunks), answer)


def test_it_is_the_mean_probability_of_the_statements() -> None:
    of = evaluator(0.9, 0.6, 0.3)
    (found,) = of.evaluate([event(ANSWER, "It opens at nine.")])
    assert found.outcomes["faithfulness"] == Scored(2 / 3)
    score = found.outcomes[NAME]
    assert isinstance(score, Scored)
    assert score.value == pytest.approx(0.6)
    assert list(of.definitions) == ["faithfulness", NAME]
    assert of.definitions[NAME] == ExpectedFaithfulness().definition("doubting/1") != of.definitions["faithfulness"]
    assert of.bounds[NAME] == (0.0, 1.0)
    assert of.thresholds == {}, "none ships"


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=3, max_size=3))
def test_of_a_judge_without_doubt_it_is_faithfulness(probabilities: list[float]) -> None:
    (found,) = evaluator(*probabilities).evaluate([event(ANSWER, "c")])
    assert found.outcomes[NAME] == found.outcomes["faithfulness"]


@pytest.mark.parametrize(
    ("answer", "chunks", "probabilities", "reason"),
    [
        ("", ("c",), (), Reason.EMPTY_ANSWER),
        ("I don't know.", ("c",), (), Reason.NO_CLAIMS),
        (ANSWER, (), (), Reason.NO_CONTEXT),
        (ANSWER, ("c",), (0.9, 0.9), Reason.JUDGE_INCOMPLETE),
        (ANSWER, ("c",), (0.9, float("nan"), 0.9), Reason.NON_FINITE),
    ],
)
def test_where_there_is_none_there_is_a_reason(
    answer: str, chunks: tuple[str, ...], probabilities: tuple[float, ...], reason: Reason
) -> None:
    (found,) = evaluator(*probabilities).evaluate([event(answer, *chunks)])
    assert found.outcomes[NAME] == Unscored(reason)


def test_a_low_one_is_flagged_where_a_threshold_is_set_and_speaks_for_the_model_where_passages_suffice() -> None:
    values, thresholds = {NAME: 0.4, "context_recall": 0.9}, {NAME: 0.5, "context_recall": 0.6}
    flags = flags_of(values, thresholds)
    assert flags == (Flag.EXPECTED_FAITHFULNESS_LOW,)
    assert flags_of(values, {}) == ()
    assert fault_of(values, thresholds, flags) is Fault.GENERATION
    assert NAME in FLAGGED_METRICS


def test_it_is_scored_where_it_is_named_and_brings_the_others_with_it() -> None:
    for judge in (Judge(), Judge(kind="local")):
        assert set(scored((NAME,), judge)) == {NAME, "faithfulness", "faithful_probability"}
        assert NAME not in scored(("faithfulness",), judge)
        assert beyond(("faithfulness", NAME), judge) == ""
    for judge in (Judge(kind="none"), Judge(kind="local", local_model="some/nli")):
        assert f"{NAME}: only the judges that ship with Groundwatch score that" in beyond((NAME,), judge)
    assert NAME in JUDGED
    assert NAME in METRICS


def test_the_settings_ask_for_it() -> None:
    asked = Settings.model_validate({"scoring": {"metrics": ("faithfulness", NAME), "sketch": False}})
    of = build_evaluator(asked, None)
    assert list(of.definitions) == ["faithfulness", "faithful_probability", NAME]
    (found,) = of.evaluate([event("The museum opens at nine.", "The museum opens at nine.")])
    score = found.outcomes[NAME]
    assert isinstance(score, Scored)
    assert 0.5 < score.value < 1.0
