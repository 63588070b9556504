"""One case on the terminal: everything that an engineer needs is there, and no text of an event is obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import click
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from consumer.case_export import exported
from consumer.case_file import CaseChunk, CaseEvidence, CaseFile, CaseStatement, decode_case, encode_case, smaller_cases
from consumer.case_filter import named
from consumer.case_parts import answer_pieces
from consumer.case_rendering import Style, rendered, row
from consumer.decode import Decoder
from consumer.inert_text import inert, inert_json, inert_lines
from consumer.record import RecordRejected
from consumer.settings import Settings
from consumer.terminal_text import shortened, wrapped
from metrics.event import content_hash
from tests.case_files import ANSWER, WRONG, audited, case_file

HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://evil\x1b\\ \x9b31m \u202egnp.exe\u202c \x00\x08\x7f\r"
    "CASE all good\n\nSCORES\n  faithfulness 1.000 ✓ not below\u2028WHY IT IS HERE\ud83d<script>alert(1)</script>"
)
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
NOW = 1_790_000_000.0
DEFAULT = Style()


def plain(case: CaseFile, style: Style = DEFAULT) -> str:
    return click.unstyle(rendered(case, style))


def test_statements_that_were_not_judged_are_named_and_survive_the_topic() -> None:
    case = case_file(7, NOW, statements_left_out=1200)
    assert "1,200 statements beyond the first 2 were not judged" in plain(case)
    assert decode_case(encode_case(case)) == case


def test_the_page_of_a_case_says_what_is_wrong_and_where() -> None:
    page = plain(case_file(7, NOW))
    for expected in (
        "CASE evt-7",
        "app=helpdesk,lang=en",
        "✗ flagged faithfulness_low: faithfulness 0.500 is below 0.750",
        "likely fault: generation; the passages fit the question",
        "✗ contradicted   1  │ You have 28 days of paid leave a year.",
        "✓ supported      2  │ Part-time staff have a share of that.",
        "because │ says 28, the passage says 26",
        "evidence passage 1 leave#7, characters 0 to 50",
        "»Full-time staff have 26 days of paid leave a year.« Part-time staff",
        "✗ below by 0.250  (threshold 0.75)",
        "topic similarity                0.910  no threshold",
        "leave#7, from handbook.pdf, similarity to the answer 0.910, retriever's score 0.83",
        "qa.events, partition 0, offset 7",
        "rate, inclusion probability 1",
        "trace-7",
        "embedder e5",
        "faithfulness 0badcafe",
    ):
        assert expected in page, page
    assert page.index("contradicted  (probability") < page.index("supported  (probability")


def test_an_audited_case_says_its_probability_and_no_fault() -> None:
    page = plain(audited(1, NOW))
    assert "audited: chosen by the hash of its id, whatever its score (audit probability 0.01)" in page
    assert "likely fault" not in page


def test_missing_parts_are_said() -> None:
    page = plain(case_file(1, NOW, question=None, answer=" ", contexts=(), statements=(), truncated=True))
    assert "QUESTION\n  (none)" in page
    assert "  (blank)" in page
    assert "none retrieved" in page
    assert "shortened: the broker refused the whole" in page
    for smaller in smaller_cases(case_file(1, NOW)):
        assert "shortened" in plain(smaller)


def test_long_passages_are_cut_but_not_around_the_evidence() -> None:
    long = "x" * 2000 + " The limit is 40 kg. " + "y" * 2000
    start = long.index("The limit")
    evidence = CaseEvidence(0, "d", start, start + 19, "The limit is 40 kg.")
    statement = CaseStatement("The limit is 30 kg.", 0, 19, "contradicted", "30, not 40", 0.1, (evidence,))
    case = case_file(1, NOW, answer="The limit is 30 kg.", contexts=(CaseChunk(long, "d"),), statements=(statement,))
    page = plain(case)
    assert "»Thelimitis40kg.«" in re.sub(r"[\s│]", "", page)
    assert "(4021 characters; --full shows all)" in page
    assert page.count("x") < 600
    assert plain(case, Style(whole=True)).count("y") > 2000


def hostile_case() -> CaseFile:
    evidence = CaseEvidence(0, HOSTILE, 0, 20, HOSTILE)
    record = {"id": HOSTILE, "trace_id": HOSTILE, "labels": {HOSTILE: HOSTILE}, "versions": {"judge": HOSTILE},
              "sampled_by": HOSTILE, "fault": HOSTILE, "run": HOSTILE, "segment": {"app": HOSTILE},
              "flags": (HOSTILE,)}  # fmt: skip
    return case_file(
        1, NOW, record=record, question=HOSTILE, answer=HOSTILE, reference=HOSTILE,
        contexts=(CaseChunk(HOSTILE, HOSTILE, HOSTILE),),
        statements=(CaseStatement(HOSTILE, 0, 30, HOSTILE, HOSTILE, 0.5, (evidence,)),),
        conversation=({"role": HOSTILE, "content": HOSTILE},),
    )  # fmt: skip


def test_hostile_text_is_inert_everywhere() -> None:
    """Invariant 6: escape sequences, C1 controls, reversed reading direction, and lines that pass for ours."""
    case = hostile_case()
    for text in (rendered(case, Style()), row(case, 100)):
        ours = re.sub(r"\x1b\[[0-9;]*m", "", text)  # the colours that we write ourselves
        assert not OBEYED.search(ours), OBEYED.search(ours)
        assert "\\x1b[31m" in ours
        assert sum(line.startswith("CASE ") for line in ours.splitlines()) <= 1
        assert sum(line.startswith("SCORES") for line in ours.splitlines()) <= 1
        assert sum(line.startswith("  faithfulness ") for line in ours.splitlines()) <= 1


def test_our_colours_are_the_only_sequences() -> None:
    found = set(re.findall(r"\x1b[^m]*m", rendered(hostile_case(), Style())))
    assert found <= {"\x1b[1m", "\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m"}


@given(st.text())
def test_inert_text_is_one_line_without_controls(text: str) -> None:
    assert not OBEYED.search(inert(text))
    assert "\n" not in inert(text)
    assert all(not OBEYED.search(line) and "\n" not in line for line in inert_lines(text))


@given(st.text(), st.integers(10, 60))
def test_wrapped_text_is_complete_and_narrow(text: str, width: int) -> None:
    line = inert(text)
    pieces = wrapped(line, width)
    assert all(sum(map(cell_len, piece)) <= width for piece in pieces)
    assert "".join(pieces).replace(" ", "") == line.replace(" ", "")
    assert sum(map(cell_len, shortened(text, width))) <= width


@given(st.text())
def test_inert_json_means_the_same(text: str) -> None:
    raw = orjson.dumps({"t": text.encode("utf-8", "replace").decode()}).decode()
    assert json.loads(inert_json(raw)) == json.loads(raw)
    assert not OBEYED.search(inert_json(raw))


@given(st.lists(st.tuples(st.integers(-5, 120), st.integers(-5, 120)), max_size=6))
def test_pieces_of_an_answer_are_the_answer(spans: list[tuple[int, int]]) -> None:
    statements = tuple(CaseStatement("s", start, end, "supported", "", 0.9) for start, end in spans)
    pieces = answer_pieces(ANSWER, statements)
    assert "".join(piece for piece, _ in pieces) == ANSWER
    for piece, at in pieces:
        if at is not None:
            assert piece == ANSWER[statements[at].start : statements[at].end]


def test_an_export_is_the_event_again() -> None:
    case = case_file(3, NOW)
    line = exported(case)
    assert line is not None
    decoded = Decoder(Settings().decode).decode(line.encode(), fallback_id="x", broker_time=None)
    event = decoded.event
    assert decoded.form == "native"
    assert decoded.repairs == ()
    assert (event.id, event.timestamp, event.question, event.answer) == ("evt-3", NOW, case.question, ANSWER)
    assert [(c.id, c.text, c.score, c.source) for c in event.contexts] == [
        (c.id, c.text, c.score, c.source) for c in case.contexts
    ]
    assert event.labels == {"model": "m-1", "app": "helpdesk", "lang": "en"}
    assert len(content_hash(event)) == 32
    about = json.loads(line)["case"]
    assert about["statements"][0] == {
        "text": WRONG,
        "verdict": "contradicted",
        "reason": "says 28, the passage says 26",
    }


def test_a_case_without_its_whole_text_is_not_exported() -> None:
    assert [exported(smaller) for smaller in smaller_cases(case_file(1, NOW))] == [None, None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"question": 5}, {"answer": ["x"]}, {"contexts": [{"text": 1}]}, {"contexts": 3}, {"why": [1]},
        {"statements": [{"text": "x"}]}, {"record": {}}, {"conversation": [{"role": 1}]}, {"v": 2}, {"v": "1"},
    ],
)  # fmt: skip
def test_what_is_no_case_file_is_refused(change: dict[str, object]) -> None:
    data = orjson.loads(encode_case(case_file(1, NOW)))
    with pytest.raises(RecordRejected):
        decode_case(orjson.dumps(data | change))


@pytest.mark.parametrize("field", ["flags", "fault", "run", "sampled_by", "trace_id", "thresholds"])
def test_fields_of_the_record_that_are_shown_are_checked(field: str) -> None:
    data = orjson.loads(encode_case(case_file(1, NOW)))
    data["record"][field] = [[1]] if field == "flags" else {"x": []} if field == "thresholds" else 5
    with pytest.raises(RecordRejected):
        decode_case(orjson.dumps(data))


def test_a_case_survives_its_encoding() -> None:
    for case in (case_file(1, NOW), audited(2, NOW), replace(case_file(3, NOW), reference="26 days")):
        assert decode_case(encode_case(case)) == case


@pytest.mark.parametrize("name", ["a", "e" * 64, "3f2b8c1e-0000-4000-8000-00000000abcd", "問" * 32])
def test_the_list_shows_an_id_whole_where_it_fits(name: str) -> None:
    assert f"  {name}  " in click.unstyle(row(case_file(1, NOW, record={"id": name}), 100))


@pytest.mark.parametrize("name", ["e" * 65, "問" * 33, "a\nb", "-x", " a", "", "\x1b[31m"])
def test_the_list_shows_a_key_that_show_takes_where_the_id_does_not_fit(name: str) -> None:
    case = case_file(1, NOW, record={"id": name})
    reference = click.unstyle(row(case, 100)).split("  ")[1].split(" ")[0]
    assert named([case], reference) == [case]


def test_two_long_ids_with_one_beginning_can_be_told_apart_in_the_list() -> None:
    cases = [case_file(1, NOW, record={"id": "e" * 90 + end}) for end in "ab"]
    first, second = (click.unstyle(row(case, 100)).split("  ")[1].split(" ")[0] for case in cases)
    assert named(cases, first) == [cases[0]]
    assert named(cases, second) == [cases[1]]
