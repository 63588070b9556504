"""Faithfulness from statements and verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.event import Chunk, Event, Turn
from metrics.faithfulness import answer_log_odds, ask, count, definition_of, faithfulness
from metrics.judge import Judgement, JudgeRequest, Label, Statement, Verdict
from metrics.outcome import Reason, Scored, Unscored

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
