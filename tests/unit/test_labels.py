"""Labels as they stand on their topic and in files: nothing beyond the limits, nothing a terminal would obey."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.case_file import CaseFile
from consumer.label import Label, LabelChange, change_of, decode_label, encode_label, label_of, record_key
from consumer.label_lines import BadLine, CaseUnclear, label_line, read_lines
from consumer.record import MetricScore, RecordRejected
from tests.case_files import audited, case_file

NOW = 1_790_000_000.0


def label(number: int = 1, **changes: Any) -> Label:
    return replace(label_of(audited(number, NOW), "good", by="anna", note="", now=NOW + 60), **changes)


def test_a_label_holds_what_was_known_of_its_case_and_comes_back_as_it_went() -> None:
    made = label_of(audited(1, NOW), "bad", by="anna", note="the number is wrong", now=NOW + 60)
    assert made == Label(
        id="evt-1",
        content_hash=audited(1, NOW).record.content_hash,
        verdict="bad",
        by="anna",
        labelled_time=NOW + 60,
        event_time=NOW,
        segment={"app": "helpdesk", "lang": "en"},
        why=("audit",),
        audit_probability=0.01,
        probability=1.0,
        scores={"faithfulness": MetricScore(1.0, 0.05)},
        definitions={"faithfulness": "0badcafe"},
        note="the number is wrong",
    )
    assert decode_label(encode_label(made)) == made
    flagged = label_of(case_file(2, NOW), "bad", by="anna", note="", now=NOW)
    assert (flagged.why, flagged.audit_probability, flagged.flags) == (("flagged",), None, ("faithfulness_low",))
    assert decode_label(encode_label(flagged)) == flagged


@given(st.text(max_size=200), st.text(max_size=60))
def test_what_is_written_is_one_line_without_controls_and_is_read_again(note: str, by: str) -> None:
    made = label_of(audited(1, NOW), "good", by=f"a{by}", note=note, now=NOW)
    assert decode_label(encode_label(made)) == made
    assert not set(made.note + made.by) & {*map(chr, range(32)), *map(chr, range(127, 160)), "\u2028", "\u202e"}


def test_names_and_notes_have_limits() -> None:
    hostile = label_of(audited(1, NOW), "good", by=" a\x1b[31mb\n", note="one\ntwo\u202e\x00three", now=NOW)
    assert (hostile.by, hostile.note) == ("a [31mb", "one two three")
    for by, note, told in (
        ("a", "x" * 1001, "the note has 1,001 characters; at most 1,000"),
        ("b" * 101, "", "at most 100"),
        (" \x00", "", "is empty"),
    ):
        with pytest.raises(ValueError, match=told):
            label_of(audited(1, NOW), "good", by=by, note=note, now=NOW)


def test_a_case_of_a_foreign_writer_is_refused_or_made_readable() -> None:
    odd = audited(1, NOW, record={"scores": {"faithfulness": MetricScore(1.5, 1.0), "x": MetricScore(0.5, 0.1)}})
    assert label_of(odd, "good", by="a", note="", now=NOW).scores == {"x": MetricScore(0.5, 0.1)}
    for audit in (None, 0.0, 2.0):
        with pytest.raises(ValueError, match="this case cannot be labelled: undecodable: audit_probability"):
            label_of(audited(1, NOW, audit_probability=audit), "good", by="a", note="", now=NOW)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": "fine"}, "verdict must be good or bad"),
        ({"id": ""}, "id is empty"),
        ({"id": 7}, "id must be text"),
        ({"by": ""}, "is empty"),
        ({"note": "x" * 1001}, "at most 1,000"),
        ({"probability": 0}, "probability must lie in"),
        ({"audit_probability": 1.5}, "audit_probability must lie in"),
        ({"audit_probability": None}, "audit_probability belongs to an audited case"),
        ({"why": ["flagged"]}, "audit_probability belongs to an audited case"),
        ({"event_time": "today"}, "event_time must be a number"),
        ({"event_time": True}, "event_time must be a number"),
        ({"scores": {"faithfulness": {"value": 1.2, "probability": 1.0}}}, "must lie in \\[0, 1\\], not 1.2"),
        ({"scores": {"faithfulness": {"value": 0.2}}}, "it has no 'probability'"),
        ({"scores": {str(n): {"value": 1.0, "probability": 1.0} for n in range(33)}}, "33 scores"),
        ({"segment": ["en"]}, "segment must be an object"),
        ({"definitions": None}, "definitions must be an object"),
        ({"why": "audit"}, "why must be a list"),
    ],
)
def test_what_is_no_label_says_why(change: dict[str, Any], told: str) -> None:
    data = orjson.loads(encode_label(label())) | change
    with pytest.raises(RecordRejected, match=told) as caught:
        decode_label(orjson.dumps(data))
    assert caught.value.outcome == "undecodable"


def test_other_versions_and_foreign_fields() -> None:
    data = orjson.loads(encode_label(label()))
    assert decode_label(orjson.dumps(data | {"later": 1})) == label()
    with pytest.raises(RecordRejected, match="this reader knows 1") as caught:
        decode_label(orjson.dumps(data | {"v": 2}))
    assert caught.value.outcome == "other_version"
    for raw in (b"", b"[]", b"null", b"{}", b"\xff", b'{"v": "1"}'):
        with pytest.raises(RecordRejected):
            decode_label(raw)


@given(st.binary(max_size=60) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(str).map(str.encode))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    with pytest.raises(RecordRejected):
        decode_label(raw)


def test_a_record_of_the_topic() -> None:
    assert change_of(b"evt-1", encode_label(label())) == LabelChange("evt-1", label())
    assert change_of(b"evt-1", None) == LabelChange("evt-1", None)
    assert record_key("年假-1") == "年假-1".encode()
    for key, value in ((None, encode_label(label())), (b"evt-2", encode_label(label())), (b"evt-1", b"no")):
        with pytest.raises(RecordRejected):
            change_of(key, value)


def test_lines_of_a_file_whole_and_short_and_wrong() -> None:
    cases = {"evt-1": audited(1, NOW), "evt-2": case_file(2, NOW)}

    def find(reference: str) -> CaseFile:
        if reference not in cases:
            raise CaseUnclear(f"no case file of {reference!r}")
        return cases[reference]

    lines = [
        label_line(label(7)).encode(),
        b"",
        b'{"id": "evt-1", "verdict": "bad", "by": "bo", "note": "x", "labelled_time": 5}',
        b'{"id": "evt-2", "verdict": "good"}',
        b'{"id": "evt-9", "verdict": "none"}',
        b"good evt-1",
        b'{"id": "evt-9", "verdict": "good"}',
        b'{"id": "evt-1", "verdict": "fine"}',
        b'{"id": "evt-1", "verdict": "good", "note": 5}',
        b'{"id": "evt-1", "verdict": "good", "scores": {}}',
        b"[1]",
        b'{"verdict": "good"}',
    ]
    found = list(read_lines(lines, find, by="anna", now=NOW + 60))
    assert found[:4] == [
        LabelChange("evt-7", label(7)),
        LabelChange("evt-1", label_of(cases["evt-1"], "bad", by="bo", note="x", now=5.0)),
        LabelChange("evt-2", label_of(cases["evt-2"], "good", by="anna", note="", now=NOW + 60)),
        LabelChange("evt-9", None),
    ]
    bad = [entry for entry in found[4:] if isinstance(entry, BadLine)]
    assert [entry.number for entry in bad] == [6, 7, 8, 9, 10, 11, 12]
    told = ["no JSON", "no case file of 'evt-9'", "not 'fine'", "note must be text", "no label", "object", "no id"]
    assert all(part in entry.reason for part, entry in zip(told, bad, strict=True)), bad
