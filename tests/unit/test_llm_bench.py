"""The bench of the LLM judge: which cases it takes, and what it makes of results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from metrics.outcome import Reason, Scored, Unscored
from metrics.statements import claims_of
from tests.bench.llm.cases import COMPARED, LONGER, SENTENCES, TRIED, Case, compared, development, longer
from tests.bench.llm.comparison import (
    Result,
    append,
    balanced_accuracy,
    difference,
    held_out_thresholds,
    read,
    report,
    right,
)
from tests.bench.llm.grain import Split, Study
from tests.bench.llm.grain import run as run_grains
from tests.services import SHARED


def case(number: int, label: int, name: str = "a_set") -> Case:
    return Case(f"{name}-{number}-{label}", name, f"g{number}-{label}", "en", label, "q?", ("c",), "a")


def result(of: Case, score: float | None, tokens: int = 100) -> Result:
    return Result(of.id, "judge", score, None if score is not None else "judge_parse: cut", 1, tokens, 10, 1.0)


CASES = [case(number, label) for number in range(10) for label in (0, 1)]
PERFECT = {c.id: result(c, float(c.label)) for c in CASES}


def test_a_score_at_the_threshold_is_faithful_and_one_below_is_not() -> None:
    found = {c.id: result(c, 0.75 if c.label else 0.749) for c in CASES}
    assert right(CASES, found, [0.75] * len(CASES)).all()


def test_a_case_without_a_score_is_wrong_whatever_its_label() -> None:
    found = {c.id: result(c, None) for c in CASES}
    assert not right(CASES, found, [0.75] * len(CASES)).any()
    assert "20 judge_parse" in report(CASES, found, PERFECT)


def test_balanced_accuracy_of_a_judge_that_says_yes_to_everything_is_a_half() -> None:
    labels = np.array([True, False, False, False])
    assert balanced_accuracy(labels, np.array([True, False, False, False])) == 0.5


def test_the_difference_of_a_judge_with_itself_is_nothing() -> None:
    told = right(CASES, PERFECT, [0.75] * len(CASES))
    assert difference(CASES, told, told) == (0.0, 0.0, 0.0)


def test_the_interval_of_the_difference_holds_it_and_is_wider_where_cases_disagree() -> None:
    always = {c.id: result(c, 1.0) for c in CASES}
    half = {c.id: result(c, float(c.label) if k % 4 < 2 else 1.0 - c.label) for k, c in enumerate(CASES)}
    mine, theirs, other = (right(CASES, found, [0.75] * len(CASES)) for found in (PERFECT, always, half))
    gap, low, high = difference(CASES, mine, theirs)
    assert (gap, low, high) == pytest.approx((0.5, 0.5, 0.5))
    gap, low, high = difference(CASES, mine, other)
    assert low < gap < high


def test_a_threshold_of_other_folds_separates_what_can_be_separated() -> None:
    found = {c.id: result(c, 0.4 if c.label else 0.3) for c in CASES}
    assert right(CASES, found, held_out_thresholds(CASES, found)).all()


def test_tokens_are_summed_over_all_cases_and_compared() -> None:
    cheap = {c.id: result(c, float(c.label), tokens=44) for c in CASES}
    dear = {c.id: result(c, float(c.label), tokens=98) for c in CASES}
    assert "| **tokens** | | 1,080 | 2,160 | 50% of ragas |" in report(CASES, cheap, dear)


def test_results_are_read_back_after_an_interruption_and_foreign_fields_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    assert read(file) == {}
    append(file, result(CASES[0], None))
    with file.open("a", encoding="utf-8") as out:
        record = {"case": "x", "judge": "ragas", "score": 1.0, "unscored": None, "calls": 2, "prompt_tokens": 5}
        out.write(json.dumps({**record, "completion_tokens": 1, "seconds": 2.0, "refused_calls": 1}) + "\n")
    found = read(file)
    assert found[CASES[0].id] == result(CASES[0], None)
    assert found["x"].tokens == 6


@pytest.fixture(scope="module")
def taken() -> list[Case]:
    if not (SHARED / "data").is_dir():
        pytest.skip("no labelled data")
    return compared(SHARED / "data")


def test_the_cases_are_balanced_and_share_no_document_with_those_of_development(taken: list[Case]) -> None:
    others = development(SHARED / "data")
    assert len(taken) == 2 * sum(COMPARED.values()) == 120
    assert {name: sum(c.label for c in taken if c.set == name) for name in COMPARED} == COMPARED
    assert all(sum(c.label for c in taken[:n]) >= 0.4 * n for n in range(10, 120, 10))
    documents = {(c.set.partition("_")[0], c.group) for c in taken}
    assert not documents & {(c.set.partition("_")[0], c.group) for c in others}
    assert not {c.id for c in taken} & set(TRIED.read_text(encoding="utf-8").split())


def test_answers_of_several_sentences_are_balanced_within_each_set_and_of_other_documents(
    taken: list[Case],
) -> None:
    found = longer(SHARED / "data")
    assert {len(claims_of(c.answer).statements) for c in found} <= set(SENTENCES)
    for name, per_label in LONGER.items():
        assert [sum(c.set == name and c.label == label for c in found) for label in (0, 1)] == [per_label, per_label]
    assert [c.label for c in found[:4]].count(1) == 2
    documents = {(c.set.partition("_")[0], c.group) for c in found}
    assert len(documents) == len(found)
    assert not documents & {(c.set.partition("_")[0], c.group) for c in taken}


def test_the_study_of_the_grain_shows_how_scores_move(capsys: pytest.CaptureFixture[str]) -> None:
    def whole(of: Case) -> Split:
        return Split(Scored(float(of.label)), 1)

    def parts(of: Case) -> Split:
        return Split(Scored(0.8), 5) if of.label or of is CASES[0] else Split(Unscored(Reason.JUDGE_PARSE), 0)

    used = Counter(calls=3, prompt_tokens=1000, completion_tokens=234)
    run_grains([Study("whole", whole, used), Study("parts", parts, Counter())], CASES)
    printed = capsys.readouterr().out
    assert "| whole | 1.0 | 1.000 | 0.000 | 1.000 | 0 | 3 | 1,234 |" in printed
    assert "| parts | 2.8 | 0.800 | 0.800 | 0.500 | 9 | 0 | 0 |" in printed
    assert (
        "from whole to parts: 11 of 20 answers scored by both, mean change -0.109, mean size 0.255, 1 change sides"
        in printed
    )
