"""Text of an event on a page is inert, and evidence stands where it is (field case 71 d)."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from consumer.case_file import CaseEvidence
from consumer.pages.answer import case_view
from consumer.pages.texts import marked_passage, one_line, shown
from tests.case_files import PASSAGE, case_file


@given(st.text())
def test_no_text_makes_markup_or_turns_the_reading_direction(text: str) -> None:
    found = str(shown(text))
    plain = re.sub(r'<span class="code">U\+[0-9A-F]{4,6}</span>', "", found)
    assert "<" not in plain
    assert ">" not in plain
    assert '"' not in plain
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x7f-\x9f\ud800-\udfff]", plain)


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cf", "Zl", "Zp"))))
def test_ordinary_text_is_what_it_was(text: str) -> None:
    assert html.unescape(str(shown(text))) == text


def test_emoji_and_scripts_keep_their_joiners() -> None:
    assert str(shown("👩‍🚀 می‌خواهم")) == "👩‍🚀 می‌خواهم"


def test_markup_stands_as_text() -> None:
    assert str(shown("<script>alert(1)</script>")) == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert str(shown("pay\u202e100")) == 'pay<span class="code">U+202E</span>100'
    assert str(shown("\ud800")) == '<span class="code">U+D800</span>'


def test_a_line_of_a_list_is_short_and_inert() -> None:
    assert str(one_line("<b>\n\n" + "x" * 10_000_000, 10)) == "&lt;b&gt; xxxxxx…"
    assert str(one_line("two  words", 10)) == "two words"


def spans(*places: tuple[int, int]) -> list[CaseEvidence]:
    return [CaseEvidence(0, None, start, end, PASSAGE[start:end]) for start, end in places]


@given(st.lists(st.tuples(st.integers(-5, 120), st.integers(-5, 120)), max_size=6))
def test_pieces_of_a_passage_are_the_passage_whatever_the_evidence(places: list[tuple[int, int]]) -> None:
    base = case_file(1, 0.0).statements[0]
    statements = [replace(base, evidence=(evidence,)) for evidence in spans(*places)]
    pieces = marked_passage(PASSAGE, 0, statements)
    assert "".join(piece.text for piece in pieces) == PASSAGE
    for number, (start, end) in enumerate(places, 1):
        marked = "".join(piece.text for piece in pieces if number in piece.says)
        assert marked == (PASSAGE[start:end] if 0 <= start < end <= len(PASSAGE) else "")


def test_every_statement_leads_to_its_evidence() -> None:
    view = case_view(case_file(7, 0.0), [], ("app", "lang"), None, "https://traces.example/{trace_id}?x=1")
    anchors = {f"evidence-{n}-{p.place - 1}" for p in view.passages for piece in p.pieces for n in piece.begins}
    assert {said.target for said in view.statements} <= anchors
    assert view.trace == "https://traces.example/trace-7?x=1"
    assert [p.place for p in view.passages] == [1, 2]
    assert [p.open for p in view.passages] == [True, True]


def test_evidence_of_a_text_that_was_left_out_leads_to_the_statement() -> None:
    case = case_file(7, 0.0)
    case = replace(case, contexts=(replace(case.contexts[0], text=None), case.contexts[1]))
    view = case_view(case, [], ("app", "lang"), None, "")
    assert {said.target for said in view.statements} == {"statement-1", "statement-2"}
