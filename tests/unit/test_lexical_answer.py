"""The lexical judge's probability of a whole answer: what it is made of, and how it is fitted."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.event import Chunk, Event, Turn
from metrics.faithfulness import ask
from metrics.judge import Judgement, JudgeRequest
from metrics.lexical.answer import AnswerModel, overlap, values
from metrics.lexical.answer_fit import REAL, Answered, fit
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.reading import read
from metrics.outcome import Reason, Unscored

MODEL = AnswerModel(log_odds=0.6, mean=0.5, overlap=2.0, intercept=-0.8)
PASSAGE = "The library opens at nine and closes at six. Books may be kept for three weeks."


@pytest.fixture(scope="module")
def judge() -> LexicalJudge:
    return LexicalJudge()


def probability(judge: LexicalJudge, answer: str, *chunks: str, said: str = "") -> float:
    turns = (Turn("user", said),) if said else ()
    event = Event("e", 0.0, None, tuple(Chunk(text) for text in chunks), answer, conversation=turns)
    request = ask(event).request
    assert isinstance(request, JudgeRequest)
    (judgement,) = judge.judge([request])
    assert isinstance(judgement, Judgement)
    found = judge.faithful_probability(request, judgement)
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize(
    ("answer", "sources", "share"),
    [
        ("Books are free.", ["Books are free."], 1.0),
        ("Books are free.", ["Books", "they are heavy"], 2 / 3),
        ("Books are free.", ["nothing"], 0.0),
        ("书是免费的", ["书是免费的。"], 1.0),
        ("圖書館免費", ["图书馆免费开放"], 1.0),
        ("Books are free.", [], 0.0),
        ("...", ["Books are free."], 0.0),
    ],
)
def test_overlap_is_the_share_of_different_words_that_the_sources_hold(
    answer: str, sources: list[str], share: float
) -> None:
    assert overlap(read(answer), [read(source) for source in sources]) == pytest.approx(share)


@given(st.lists(st.floats(-14, 14), min_size=1, max_size=30), st.floats(0, 1), st.integers(0, 29), st.floats(0.01, 5))
def test_a_better_statement_or_more_overlap_never_makes_an_answer_worse(
    odds: list[float], shared: float, at: int, more: float
) -> None:
    before = MODEL.probability(odds, shared)
    better = list(odds)
    better[at % len(odds)] += more
    assert 0.0 <= before <= MODEL.probability(better, shared) + 1e-12
    assert before <= MODEL.probability(odds, min(1.0, shared + more)) + 1e-12 <= 1.0 + 1e-12


def test_the_weights_are_of_the_named_values() -> None:
    odds = [2.0, -1.0, 0.5]
    lowest, mean = (-1.0 + 0.5) / 2, 0.5
    assert values(odds, 0.7) == pytest.approx((0.5 * lowest + 0.5 * mean, mean, 0.7))
    total = -0.8 + 0.6 * (0.5 * lowest + 0.5 * mean) + 0.5 * mean + 2.0 * 0.7
    assert MODEL.probability(odds, 0.7) == pytest.approx(1 / (1 + math.exp(-total)))
    with pytest.raises(ValueError, match="no verdicts"):
        MODEL.probability([], 0.7)


def test_an_answer_that_keeps_to_the_passage_is_the_more_probable(judge: LexicalJudge) -> None:
    right = probability(judge, "The library opens at nine. Books may be kept for three weeks.", PASSAGE)
    half = probability(judge, "The library opens at nine. Late fees are ten euros a day.", PASSAGE)
    wrong = probability(judge, "Parking costs ten euros. Late fees are paid at the desk.", PASSAGE)
    assert right > 0.7 > half > wrong
    assert wrong < 0.3


def test_what_the_user_said_counts_as_a_source(judge: LexicalJudge) -> None:
    answer = "My card number ends in 4417 and books may be kept for three weeks."
    said = "My card number ends in 4417."
    assert probability(judge, answer, PASSAGE, said=said) > probability(judge, answer, PASSAGE)


def test_statements_stand_for_an_answer_that_is_not_known(judge: LexicalJudge) -> None:
    answer = "The library opens at nine."
    request = ask(Event("e", 0.0, None, (Chunk(PASSAGE),), answer)).request
    assert isinstance(request, JudgeRequest)
    assert judge.overlap(replace(request, answer="")) == judge.overlap(request) == 1.0


def test_without_a_fit_or_a_verdict_there_is_a_reason() -> None:
    unfitted = LexicalJudge(replace(LexicalJudge().model, answer=None))
    request = ask(Event("e", 0.0, None, (Chunk(PASSAGE),), "The library opens at nine.")).request
    assert isinstance(request, JudgeRequest)
    (judgement,) = unfitted.judge([request])
    assert isinstance(judgement, Judgement)
    assert unfitted.faithful_probability(request, judgement) == Unscored(Reason.NOT_CONFIGURED)
    assert LexicalJudge().faithful_probability(request, Judgement(())) == Unscored(Reason.NO_CLAIMS)


def drawn(truth: AnswerModel, count: int, seed: int) -> list[Answered]:
    """Answers whose labels are drawn by the probabilities of `truth`."""
    rng = random.Random(seed)
    found = []
    for k in range(count):
        odds = [rng.gauss(0, 2) for _ in range(rng.randint(1, 8))]
        shared = rng.random()
        label = int(rng.random() < truth.probability(odds, shared))
        found.append(Answered(values(odds, shared), label, f"g{k}"))
    return found


def test_the_fit_finds_back_what_labels_were_drawn_by() -> None:
    truth = AnswerModel(log_odds=0.7, mean=0.4, overlap=3.0, intercept=-1.5)
    found = fit({name: drawn(truth, 3000, k) for k, name in enumerate((*REAL, "other"))})
    for odds, shared in [([-3.0, 1.0], 0.2), ([0.0], 0.5), ([2.0, 2.0, 1.0], 0.9), ([-1.0, 3.0, 3.0, 3.0], 0.8)]:
        assert found.probability(odds, shared) == pytest.approx(truth.probability(odds, shared), abs=0.05)


def test_what_runs_against_sense_gets_no_weight() -> None:
    turned = AnswerModel(log_odds=1.0, mean=0.0, overlap=-3.0, intercept=1.0)
    assert fit({name: drawn(turned, 1000, k) for k, name in enumerate(REAL)}).overlap == 0.0


def test_a_fit_without_real_answers_of_both_kinds_is_refused() -> None:
    with pytest.raises(ValueError, match="mtrag_part"):
        fit({REAL[0]: drawn(MODEL, 50, 1), REAL[1]: [Answered((0.0, 0.0, 0.0), 1, "g")]})
