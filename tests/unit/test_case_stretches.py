"""A huge answer on the terminal: everything that is wrong, and what was left out between."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.case_file import CaseChunk, CaseEvidence, CaseFile, CaseStatement
from consumer.case_parts import answer_pieces
from consumer.case_rendering import Style, rendered
from consumer.case_stretches import KEPT, LONG, LeftOut, middle_left_out, without_long_stretches
from tests.case_files import case_file

NOW = 1_790_000_000.0
PASSAGE = "Locker 7 is on the third floor. " + "Lockers are emptied on Fridays. " * 3000


def long_case(number: int, wrong: Sequence[int], text: str = "Locker {} is on the first floor.") -> CaseFile:
    """`number` statements, of which those in `wrong` are contradicted."""
    texts = [text.format(at) for at in range(number)]
    quote = PASSAGE[: PASSAGE.index(".") + 1]
    evidence = CaseEvidence(0, "lockers", 0, len(quote), quote)
    statements, start = [], 0
    for at, said in enumerate(texts):
        label = "contradicted" if at in wrong else "supported"
        statements.append(CaseStatement(said, start, start + len(said), label, f"reason {at}", 0.5, (evidence,)))
        start += len(said) + 1
    contexts = (CaseChunk(PASSAGE, "lockers"),)
    return case_file(1, NOW, answer=" ".join(texts), contexts=contexts, statements=tuple(statements))


def page(case: CaseFile, *, whole: bool = False) -> str:
    return click.unstyle(rendered(case, Style(whole=whole)))


def test_a_huge_answer_shows_what_is_wrong_and_how_much_was_left_out() -> None:
    wrong = (900, 901, 4000, 5999)
    case = long_case(6000, wrong)
    assert len(case.answer or "") > 200_000
    shown = page(case)
    assert len(shown) < 20_000
    for at in wrong:
        assert len(re.findall(rf"│ Locker {at} is on the first floor\.", shown)) == 2
        assert f"because │ reason {at}\n" in shown
    assert shown.count("│ »Locker 7 is on the third floor.«") > len(wrong)
    left_out = [int(n.replace(",", "")) for n in re.findall(r"^ +… ([\d,]+) characters left out; --full", shown, re.M)]
    assert len(left_out) == 3
    assert sum(left_out) > 190_000
    assert re.search(r"… [\d,]+ more supported statements \([\d,]+ characters\) left out; --full shows all", shown)


def test_full_shows_all_of_it() -> None:
    shown = page(long_case(6000, (900,)), whole=True)
    assert "left out" not in shown
    assert all(f"Locker {at} is on the first floor." in shown for at in range(6000))
    assert shown.count("Lockers are emptied on Fridays.") > 2000


@pytest.mark.parametrize("number", [2, 100, 200])
def test_up_to_its_length_an_answer_is_shown_whole(number: int) -> None:
    case = long_case(number, (1,))
    assert len(case.answer or "") <= LONG
    without_passages = [block for block in page(case).split("\n\n") if not block.startswith("PASSAGES")]
    assert without_passages == [
        block for block in page(case, whole=True).split("\n\n") if not block.startswith("PASSAGES")
    ]


def test_one_statement_of_200_000_characters_is_whole_only_where_it_is_wrong() -> None:
    text = "Locker {} is " + "very " * 40_000 + "full."
    assert page(long_case(1, (), text)).count("very") < 1000
    assert page(long_case(1, (0,), text)).count("very") >= 2 * 40_000


def test_a_huge_question_is_shortened_and_no_text_passes_for_the_mark() -> None:
    mark = "… 5 characters left out; --full shows all"
    shown = page(case_file(1, NOW, question=f"{mark}\n" + "why? " * 40_000))
    assert shown.count("why?") < 1000
    assert f"│ {mark}" in shown
    assert len([line for line in shown.splitlines() if line.strip().startswith("… ")]) == 1


def test_a_supported_statement_that_another_passage_contradicts_is_shown() -> None:
    case = long_case(6000, ())
    spoken = list(case.statements)
    kept = spoken[3000]
    spoken[3000] = CaseStatement(kept.text, kept.start, kept.end, kept.label, kept.reason, 0.5, kept.evidence, True)
    shown = page(case_file(1, NOW, answer=case.answer, contexts=case.contexts, statements=tuple(spoken)))
    assert shown.count("Locker 3000 is on the first floor.") == 2


@given(st.lists(st.tuples(st.integers(1, 6000), st.booleans()), max_size=8))
def test_what_is_shown_and_what_is_left_out_make_the_answer(parts: list[tuple[int, bool]]) -> None:
    answer, statements, start = "", [], 0
    for at, (length, wrong) in enumerate(parts):
        answer += chr(97 + at) * length
        label = "not_found" if wrong else "supported"
        statements.append(CaseStatement("", start, start + length, label, "", 0.5))
        start += length
    shown = list(without_long_stretches(answer_pieces(answer, tuple(statements)), statements))
    at = 0
    for part in shown:
        if isinstance(part, LeftOut):
            assert part.characters > KEPT
            at += part.characters
        else:
            assert answer.startswith(part[0], at)
            at += len(part[0])
    assert at == len(answer)
    whole = [part[0] for part in shown if not isinstance(part, LeftOut)]
    for length, wrong, letter in ((length, wrong, chr(97 + k)) for k, (length, wrong) in enumerate(parts)):
        assert not wrong or letter * length in whole


@given(st.integers(0, 3 * LONG))
def test_the_middle_of_a_text_is_left_out_only_where_it_is_long(length: int) -> None:
    parts = list(middle_left_out("x" * length))
    assert sum(part.characters if isinstance(part, LeftOut) else len(part) for part in parts) == length
    assert (len(parts) == 3) == (length > LONG)
