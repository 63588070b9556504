"""The probability that a whole answer is faithful: a metric of its own, from the judge's verdicts to flag and fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from consumer.judge_settings import Judge
from consumer.judged_metrics import JUDGED, beyond, scored
from consumer.settings import Settings
from consumer.settings_rules import METRICS
from consumer.thresholds import thresholds_in_force
from metrics.baseline import Baseline, BaselineThreshold, Operating, encode_baseline
from metrics.evaluation import Evaluator
from metrics.event import Chunk, Event
from metrics.faithful_probability import NAME, FaithfulProbability
from metrics.flags import FLAGGED_METRICS, Fault, Flag, fault_of, flags_of
from metrics.judge import Judgement, JudgeRequest, Label, Verdict
from metrics.metric import Text, Vector
from metrics.outcome import Reason, Scored, Unscored

LOCAL, FOREIGN = Judge(kind="local"), Judge(kind="local", local_model="some/nli")


@dataclass
class Sure:
    """A judge that supports everything and is `probability` sure of it."""

    probability: float | Unscored = 0.8
    short: bool = False
    threshold: float | None = 0.4
    name: str = "sure"
    identity: str = "sure/1"

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        return [
            Judgement(tuple(Verdict(Label.SUPPORTED, "so") for _ in request.statements[int(self.short) :]))
            for request in requests
        ]

    def faithful_probability(self, request: JudgeRequest, judgement: Judgement) -> float | Unscored:
        return self.probability


class NoVectors:
    identity = "none"
    dimension = 0

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        return [Unscored(Reason.NOT_CONFIGURED)] * len(texts)


def evaluator(judge: Sure) -> Evaluator:
    return Evaluator((), NoVectors(), sketches=False, judge=judge, of_verdicts=(FaithfulProbability(judge),))


def event(answer: str, *chunks: str) -> Event:
    return Event("e", 0.0, "When does it open?", tuple(Chunk(text) for text in chunks), answer)


def test_it_stands_beside_faithfulness_with_a_definition_of_its_own() -> None:
    of = evaluator(Sure())
    (found,) = of.evaluate([event("It opens at nine.", "It opens at nine.")])
    assert found.outcomes == {"faithfulness": Scored(1.0), NAME: Scored(0.8)}
    assert list(of.definitions) == ["faithfulness", NAME]
    metric = FaithfulProbability(Sure())
    assert of.definitions[NAME] == metric.definition("sure/1") != of.definitions["faithfulness"]
    assert of.definitions[NAME] != metric.definition("sure/2")
    assert of.bounds[NAME] == (0.0, 1.0)
    assert of.thresholds == {NAME: 0.4}


def test_a_judge_may_ship_no_threshold_for_it() -> None:
    assert evaluator(Sure(threshold=None)).thresholds == {}


def test_a_judge_that_is_not_calibrated_has_none() -> None:
    of = Evaluator((), NoVectors(), sketches=False, judge=Sure())
    (found,) = of.evaluate([event("It opens at nine.", "It opens at nine.")])
    assert list(found.outcomes) == list(of.definitions) == ["faithfulness"]
    assert of.thresholds == {}


@pytest.mark.parametrize(
    ("answer", "chunks", "judge", "reason"),
    [
        ("", ("c",), Sure(), Reason.EMPTY_ANSWER),
        ("I don't know.", ("c",), Sure(), Reason.NO_CLAIMS),
        ("It opens at nine.", (), Sure(), Reason.NO_CONTEXT),
        ("It opens at nine.", ("c",), Sure(short=True), Reason.JUDGE_INCOMPLETE),
        ("It opens at nine.", ("c",), Sure(float("nan")), Reason.NON_FINITE),
    ],
)
def test_where_there_is_none_there_is_a_reason(
    answer: str, chunks: tuple[str, ...], judge: Sure, reason: Reason
) -> None:
    (found,) = evaluator(judge).evaluate([event(answer, *chunks)])
    assert found.outcomes[NAME] == Unscored(reason)


def test_a_low_one_is_flagged_and_speaks_for_the_model_where_passages_suffice() -> None:
    thresholds = {NAME: 0.5, "context_recall": 0.6, "faithfulness": 0.75}
    assert flags_of({NAME: 0.4985}, thresholds) == (Flag.FAITHFUL_PROBABILITY_LOW,)
    assert flags_of({NAME: 0.4995}, thresholds) == ()
    assert NAME in FLAGGED_METRICS

    def fault(values: dict[str, float]) -> Fault:
        return fault_of(values, thresholds, flags_of(values, thresholds))

    assert fault({NAME: 0.1, "context_recall": 0.9}) is Fault.GENERATION
    assert fault({NAME: 0.1, "faithfulness": 1.0, "context_recall": 0.9}) is Fault.GENERATION
    assert fault({NAME: 0.9, "faithfulness": 0.2, "context_recall": 0.9}) is Fault.GENERATION
    assert fault({NAME: 0.1, "context_recall": 0.1}) is Fault.RETRIEVAL
    assert fault({NAME: 0.1}) is Fault.UNKNOWN


def test_the_threshold_that_ships_gives_way_to_a_baseline_and_both_to_settings(tmp_path: Path) -> None:
    definitions = {"faithfulness": "f1", NAME: "p1"}
    shipped = {NAME: 0.42}
    assert thresholds_in_force(Settings(), definitions, shipped).of({}) == {"faithfulness": 0.75, NAME: 0.42}
    own = BaselineThreshold(NAME, "p1", ("all",), 0.5, "false_alarms", 0.05, Operating(100, 0, 0.05, 0.02, 0.1))
    baseline = Baseline(
        created=1.0, segment_keys=("app",), definitions=definitions, versions={}, distributions=(), thresholds=(own,)
    )
    file = tmp_path / "baseline.json"
    file.write_bytes(encode_baseline(baseline))
    measured = Settings.model_validate({"baseline": {"file": file}})
    assert thresholds_in_force(measured, definitions, shipped).of({})[NAME] == 0.5
    named = Settings.model_validate({"baseline": {"file": file}, "thresholds": {"default": {NAME: 0.6}}})
    assert thresholds_in_force(named, definitions, shipped).of({})[NAME] == 0.6
    other = Settings.model_validate({"baseline": {"file": file, "on_mismatch": "unflagged"}})
    assert NAME not in thresholds_in_force(other, {NAME: "p2"}, shipped).of({}), "of another definition: unflagged"


def test_faithfulness_and_its_probability_come_together_with_the_judges_that_ship_only() -> None:
    for judge in (Judge(), LOCAL):
        assert scored(("faithfulness", "topic_similarity"), judge) == ("faithfulness", "topic_similarity", NAME)
        assert set(scored((NAME,), judge)) == {"faithfulness", NAME}
        assert scored(("topic_similarity",), judge) == ("topic_similarity",)
    for judge in (FOREIGN, Judge(kind="none"), Judge(kind="llm", url="http://j/v1", model="m")):
        assert scored(("faithfulness",), judge) == ("faithfulness",)
    assert NAME in JUDGED
    assert NAME in METRICS


def test_who_names_what_the_judge_does_not_score_is_told_what_to_do() -> None:
    assert beyond(("faithfulness", NAME), LOCAL) == beyond(("faithfulness", NAME), Judge()) == ""
    assert "set judge.kind = 'lexical' or 'local'" in beyond((NAME,), Judge(kind="none"))
    assert "leave judge.local_model empty" in beyond((NAME,), FOREIGN)
    assert "only an LLM judge scores that" in beyond(("answer_relevance",), LOCAL)
    assert "only the judges that ship with Groundwatch" in beyond(
        (NAME,), Judge(kind="llm", url="http://j/v1", model="m")
    )
