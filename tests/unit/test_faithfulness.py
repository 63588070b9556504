"""Faithfulness from statements and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluation import Evaluator
from metrics.event import Chunk, Event, Turn
from metrics.faithfulness import answer_log_odds, ask, count, definition_of, faithfulness
from metrics.judge import Judgement, JudgeRequest, Label, Statement, Verdict
from metrics.metric import Text, Vector
from metrics.outcome import Reason, Scored, Unscored
from metrics.similarity import build_metrics
from metrics.statements import MAX_STATEMENTS

STATEMENTS = [Statement(f"s{k}", k, k + 1) for k in range(10)]


def verdicts(*labels: Label) -> tuple[Verdict, ...]:
    return tuple(Verdict(label, "r", (), 0.9 if label is Label.SUPPORTED else 0.1) for label in labels)


def event(answer: str | None, *contexts: str) -> Event:
    return Event("1", 0.0, "q?", tuple(Chunk(c) for c in contexts), answer)


# field case 23: missing verdicts count as support
@pytest.mark.parametrize("given_verdicts", [4, 0, 12])
def test_field_case_23_an_incomplete_judgement_is_no_score(given_verdicts: int) -> None:
    judgement = Judgement(verdicts(*[Label.SUPPORTED] * given_verdicts))
    assert faithfulness(STATEMENTS, judgement) == Unscored(Reason.JUDGE_INCOMPLETE)


def test_supported_over_all() -> None:
    judgement = Judgement(verdicts(Label.SUPPORTED, Label.CONTRADICTED, Label.NOT_FOUND, Label.SUPPORTED))
    assert faithfulness(STATEMENTS[:4], judgement) == Scored(0.5)
    counts = count(judgement.verdicts)
    assert (counts.supported, counts.contradicted, counts.not_found, counts.total) == (2, 1, 1, 4)


def test_a_failed_judge_is_its_reason() -> None:
    assert faithfulness(STATEMENTS, Unscored(Reason.JUDGE_TIMEOUT)) == Unscored(Reason.JUDGE_TIMEOUT)


@given(st.lists(st.sampled_from(Label), min_size=1, max_size=10))
def test_the_score_stays_in_its_range(labels: list[Label]) -> None:
    outcome = faithfulness(STATEMENTS[: len(labels)], Judgement(verdicts(*labels)))
    assert isinstance(outcome, Scored)
    assert outcome.value == labels.count(Label.SUPPORTED) / len(labels)


@pytest.mark.parametrize(
    ("answer", "contexts", "reason"),
    [
        (None, ["c"], "empty_answer"),
        ("  ", [], "empty_answer"),
        ("```\nx = 1\n```", ["c"], "no_prose"),
        ("I don't know.", ["c"], "no_claims"),
        ("I don't know.", [], "no_claims"),
        ("Dogs are welcome.", [], "no_context"),
        ("Dogs are welcome.", [" \n"], "no_context"),
    ],
)
def test_why_there_is_no_request(answer: str | None, contexts: list[str], reason: str) -> None:
    assert ask(event(answer, *contexts)).request == Unscored(Reason(reason))


def test_only_the_user_is_a_witness() -> None:
    turns = (Turn("user", "I have a dog."), Turn("assistant", "Dogs are banned."), Turn("user", " "))
    asked = ask(Event("1", 0.0, "q?", (Chunk("c"),), "Hunde sind erlaubt.", conversation=turns))
    assert isinstance(asked.request, JudgeRequest)
    assert asked.request.conversation == ("I have a dog.",)


class Fixed:
    """Every text is a vector at a known angle to every other: its first letter says which."""

    identity = "fixed"
    dimension = 2

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        angles = {"a": 0.0, "b": 0.3, "c": 1.2}
        found = [angles[text.content[0]] for text in texts]
        return [np.array([math.cos(x), math.sin(x)], np.float32) for x in found]


class Asking:
    """Keeps what it was asked and supports everything."""

    name = identity = "asking"

    def __init__(self) -> None:
        self.asked: list[JudgeRequest] = []

    def judge(self, requests: Sequence[JudgeRequest]) -> list[Judgement | Unscored]:
        self.asked += requests
        return [Judgement(verdicts(*[Label.SUPPORTED] * len(request.statements))) for request in requests]


def test_a_judge_is_told_how_similar_every_chunk_is_where_that_was_measured() -> None:
    judge = Asking()
    events = [event("a says so.", "b b b", " ", "c c c"), event("a says so.")]
    Evaluator(build_metrics(["topic_similarity"], "best"), Fixed(), sketches=False, judge=judge).evaluate(events)
    Evaluator((), Fixed(), sketches=False, judge=judge).evaluate(events)
    measured, unmeasured = (request.similarities for request in judge.asked)
    assert measured == (pytest.approx(math.cos(0.3)), None, pytest.approx(math.cos(1.2)))
    assert unmeasured == ()


def test_statements_beyond_the_most_are_counted_where_they_are_left_out() -> None:
    answer = " ".join(f"a{number} is a room." for number in range(MAX_STATEMENTS + 3))
    [found] = Evaluator((), Fixed(), sketches=False, judge=Asking()).evaluate([event(answer, "c")])
    assert found.judged is not None
    assert (len(found.judged.verdicts), found.judged.left_out) == (MAX_STATEMENTS, 3)


def test_one_bad_statement_weighs_more_than_the_mean_of_many() -> None:
    good = answer_log_odds(verdicts(*[Label.SUPPORTED] * 9))
    one_bad = answer_log_odds(verdicts(*[Label.SUPPORTED] * 8, Label.NOT_FOUND))
    mean = (8 * good - good) / 9
    assert one_bad < mean < good
    with pytest.raises(ValueError, match="no verdicts"):
        answer_log_odds(())


def test_the_definition_depends_on_the_judge() -> None:
    assert definition_of("lexical/1/aaaa") != definition_of("lexical/1/bbbb")
    assert len(definition_of("x")) == 8
