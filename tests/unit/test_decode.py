"""From bytes to an event: the native form, identity, time, schema drift, refusals (field cases 64, 65, 68, 70, 71)."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from consumer.decode import JUDGE_MARK, Decoded, DecodeError, Decoder
from consumer.decoding.reasons import Repair
from consumer.settings import Decode
from metrics.event import Chunk, Turn
from tests.unit.decode_payloads import FLAT, P1, P2, A, Q, framed

DECODER = Decoder(Decode(), clock=lambda: 1_770_000_000.0)
NATIVE = {
    "id": "e-1", "timestamp": "2026-11-29T10:00:00Z", "question": Q,
    "contexts": [{"id": "doc-7#3", "text": P1, "score": 0.83, "source": "handbook.pdf"}, {"text": P2}],
    "answer": A, "reference": "Two years.", "trace_id": "t-1", "conversation": [{"role": "user", "content": "Hello"}],
    "labels": {"app": "help", "model": "m-1"}, "feedback": -1,
}  # fmt: skip


def decode(record: Any, broker_time: float | None = 1_750_000_000.0, decoder: Decoder = DECODER) -> Decoded:
    raw = record if isinstance(record, bytes) else orjson.dumps(record)
    return decoder.decode(raw, fallback_id="qa.events-0-7", broker_time=broker_time)


def reason(record: Any, decoder: Decoder = DECODER) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(record, decoder=decoder)
    return caught.value.reason


def test_the_native_form() -> None:
    decoded = decode(NATIVE)
    event = decoded.event
    assert (decoded.form, decoded.repairs, decoded.ignored) == ("native", (), False)
    assert (event.id, event.timestamp, event.question, event.answer) == ("e-1", 1_795_946_400.0, Q, A)
    assert event.contexts == (Chunk(P1, "doc-7#3", 0.83, "handbook.pdf"), Chunk(P2))
    assert (event.reference, event.trace_id, event.feedback) == ("Two years.", "t-1", -1.0)
    assert event.conversation == (Turn("user", "Hello"),)
    assert event.labels == {"app": "help", "model": "m-1"}


def test_the_native_form_with_fields_of_its_users() -> None:
    decoded = decode(NATIVE | {"tokens": 17, "nested": {"question": "x"}})
    assert decoded.event == decode(NATIVE).event
    assert decoded.form == "native"
    for name, value in (
        ("Model", "m-2"),
        ("session_id", "s"),
        ("ground_truth", "x"),
        ("Reference", "y"),
        ("rating", 1),
    ):
        bare = {k: v for k, v in NATIVE.items() if k not in ("labels", "trace_id", "reference", "feedback")}
        assert decode(bare | {name: value}).event != decode(bare).event


@pytest.mark.parametrize(("answer", "read"), [(None, None), ("", ""), ("  ", "")])
def test_a_blank_answer_is_a_signal(answer: Any, read: Any) -> None:
    assert decode(FLAT | {"answer": answer}).event.answer == read
    assert decode(NATIVE | {"answer": answer}).event.answer == read


def test_no_question_and_no_contexts_are_signals() -> None:
    assert decode(FLAT | {"question": None}).event.question is None
    assert decode({"contexts": [P1], "answer": A}).event.question is None
    assert decode(FLAT | {"contexts": []}).event.contexts == ()
    decoded = decode(FLAT | {"contexts": None})
    assert decoded.event.contexts == ()
    assert decoded.repairs == (Repair.NULL_CONTEXTS,)


# field case 70
def test_required_fields_are_named() -> None:
    assert reason({"question": Q, "contexts": [P1]}) == "missing:answer"
    assert reason({"question": Q, "answer": A}) == "missing:contexts"
    assert reason(FLAT | {"contexts": 42}) == "bad_context_shape"
    assert reason({"user": "x", "level": 3}) == "unrecognised"
    assert reason({}) == "unrecognised"


def test_a_part_of_a_trace_is_incomplete() -> None:
    retriever = {"span_id": "r", "attributes": {"openinference.span.kind": "RETRIEVER", "input.value": Q,
                 "retrieval.documents.0.document.content": P1}}  # fmt: skip
    chat = {
        "request": {"messages": [{"role": "user", "content": Q}]},
        "response": {"choices": [{"message": {"content": A}}]},
    }
    assert reason(retriever) == "incomplete:answer"
    assert reason(chat) == "incomplete:contexts"


def test_an_answer_that_only_calls_a_tool_is_blank() -> None:
    record = {"messages": [{"role": "user", "content": Q}], "documents": [{"text": P1}],
              "choices": [{"message": {"content": None, "tool_calls": [{"id": "c"}]}}]}  # fmt: skip
    assert decode(record).event.answer == ""


def test_the_unrecognised_record_says_what_to_do() -> None:
    with pytest.raises(DecodeError) as caught:
        decode({"foo": 1, "bar": {"baz": 2}})
    assert "foo, bar" in str(caught.value)
    assert "mapping file" in str(caught.value)


# field case 64
@pytest.mark.parametrize("raw", [b"null", b'"null"', b"[]", b'"text"', b"123", b"true", b"[1, 2]", b'"[1]"'])
def test_what_is_no_object(raw: bytes) -> None:
    assert reason(raw) == "not_an_object"


def test_empty_value() -> None:
    assert reason(b"") == "empty"


def test_json_encoded_twice() -> None:
    decoded = decode(json.dumps(json.dumps(FLAT)).encode())
    assert decoded.event.answer == A
    assert decoded.repairs == (Repair.DOUBLE_ENCODED,)


def test_several_records_in_one_value() -> None:
    assert reason([FLAT, FLAT]) == "batch_of_records"
    assert reason({"Records": [{"body": json.dumps(FLAT)}] * 2}) == "batch_of_records"
    assert decode([FLAT]).event.answer == A


# field case 65
def test_a_key_never_stops_the_value() -> None:
    for key in (b"\xff\xfe\x00", b"", None):
        assert DECODER.decode(orjson.dumps(FLAT), fallback_id="f", broker_time=None, key=key).event.answer == A


# field case 68
def test_two_answers_that_differ_are_refused() -> None:
    assert reason(b'{"question": "q", "contexts": ["c d"], "answer": "yes", "answer": "no"}') == "duplicate_key"
    twice = decode(b'{"question": "q", "contexts": ["c d"], "answer": "yes", "answer": "yes", "host": 1, "host": 2}')
    assert twice.event.answer == "yes"
    assert twice.repairs == (Repair.DUPLICATE_KEY,) * 2


def test_two_answers_inside_an_envelope_are_refused() -> None:
    line = '{"question": "q", "contexts": ["c d"], "answer": "yes", "answer": "no"}'
    assert reason({"message": line, "host": "h", "@timestamp": "2026-01-01T00:00:00Z"}) == "duplicate_key"


def test_keys_that_differ_in_case() -> None:
    assert decode(FLAT | {"Answer": "other"}).event.answer == A


def test_limits() -> None:
    small = Decoder(Decode(max_bytes=100_000, max_chunks=3, max_characters=300, max_depth=8))
    assert reason(FLAT | {"contexts": ["some text"] * 4}, small) == "too_many_chunks"
    assert reason(NATIVE | {"contexts": [{"text": "some text"}] * 4}, small) == "too_many_chunks"
    assert reason(FLAT | {"contexts": ["some text " * 40]}, small) == "too_many_characters"
    assert reason(FLAT | {"extra": [[[[[[[[1]]]]]]]]}, small) == "too_deep"
    assert reason(FLAT | {"extra": "x" * 100_000}, small) == "too_large"
    assert reason(FLAT | {"contexts": ["a"] * 50_000}) == "too_many_chunks"


# field case 71 (a)
@pytest.mark.parametrize(
    ("given", "seconds", "repairs"),
    [
        (1760000000, 1760000000.0, ()),
        (1760000000.25, 1760000000.25, ()),
        (1760000000_000, 1760000000.0, ()),
        (1760000000_000_000, 1760000000.0, ()),
        (1760000000_000_000_000, 1760000000.0, ()),
        ("1760000000", 1760000000.0, ()),
        ("1760000000123", 1760000000.123, ()),
        ("2025-10-09T08:53:20Z", 1760000000.0, ()),
        ("2025-10-09T08:53:20", 1760000000.0, ()),
        ("2025-10-09 08:53:20.5", 1760000000.5, ()),
        ("2025-10-09T10:53:20+02:00", 1760000000.0, ()),
        ("Thu, 09 Oct 2025 08:53:20 GMT", 1760000000.0, ()),
        ({"$date": "2025-10-09T08:53:20Z"}, 1760000000.0, ()),
        (None, 1750000000.0, ()),
        ("", 1750000000.0, ()),
        (176000000, 1750000000.0, (Repair.AMBIGUOUS_TIME,)),
        (True, 1750000000.0, (Repair.BAD_TIME,)),
        ("yesterday", 1750000000.0, (Repair.BAD_TIME,)),
        ("1970-01-01T00:00:00Z", 1750000000.0, (Repair.BAD_TIME,)),
        ("9999-12-31T23:59:59Z", 1750000000.0, (Repair.BAD_TIME,)),
        (0, 1750000000.0, (Repair.AMBIGUOUS_TIME,)),
        (1e300, 1750000000.0, (Repair.AMBIGUOUS_TIME,)),
    ],
)  # fmt: skip
def test_time(given: Any, seconds: float, repairs: tuple[str, ...]) -> None:
    decoded = decode(FLAT | {"timestamp": given})
    assert decoded.event.timestamp == seconds
    assert decoded.repairs == repairs


def test_without_a_brokers_time_the_clock_is_taken() -> None:
    decoded = decode(FLAT, broker_time=None)
    assert decoded.event.timestamp == 1_770_000_000.0
    assert decoded.repairs == (Repair.NO_TIME,)
    assert decode(FLAT, broker_time=-0.001).event.timestamp == 1_770_000_000.0


# field case 71 (c)
@pytest.mark.parametrize("given", [None, "", "  ", 0, True, {}, [], "absent"])
def test_a_missing_id_is_the_position(given: Any) -> None:
    record = FLAT if given == "absent" else FLAT | {"id": given}
    assert decode(record).event.id == "qa.events-0-7"


@pytest.mark.parametrize(
    ("given", "read"), [("0", "0"), (17, "17"), (17.0, "17"), (" a ", "a"), ({"$oid": "6f"}, "6f")]
)
def test_ids(given: Any, read: str) -> None:
    assert decode(FLAT | {"id": given}).event.id == read


def test_a_long_id_is_hashed() -> None:
    one, other = (decode(FLAT | {"id": "x" * 5000 + end}).event.id for end in "ab")
    assert one != other
    assert len(one) < 80


@pytest.mark.parametrize(
    ("given", "read", "repairs"),
    [(-1, -1.0, ()), ("like", 1.0, ()), ({"rating": "dislike"}, -1.0, ()), (True, 1.0, ()), (None, None, ()),
     ("0.5", 0.5, ()), ("perhaps", None, (Repair.BAD_FEEDBACK,)), ([{"score": 1}], 1.0, ()), ("none", None, ())],
)  # fmt: skip
def test_feedback(given: Any, read: float | None, repairs: tuple[str, ...]) -> None:
    decoded = decode(FLAT | {"feedback": given})
    assert (decoded.event.feedback, decoded.repairs) == (read, repairs)


def test_labels_are_short_texts() -> None:
    decoded = decode(
        FLAT | {"labels": {"app": "x", "n": 3, "on": True, "deep": {"a": 1}, "none": None, "long": "y" * 5000}}
    )
    assert decoded.event.labels == {"app": "x", "n": "3", "on": "true"}
    assert decoded.repairs == (Repair.BAD_LABEL,) * 2
    assert decode(FLAT | {"app": "help", "model": "m"}).event.labels == {"app": "help", "model": "m"}


def test_look_alikes_are_not_read() -> None:
    record = {
        "query": Q, "answer": A, "retrieved_contexts": [P1, P2], "reference_contexts": ["g"], "ground_truth": "Gold.",
        "citations": [{"text": "cited"}], "search_queries": ["generated"], "context": ["ideal"], "line_number": 4,
    }  # fmt: skip
    event = decode(record).event
    assert (event.question, event.answer, event.reference) == (Q, A, "Gold.")
    assert [chunk.text for chunk in event.contexts] == [P1, P2]
    assert event.id == "qa.events-0-7"


def test_the_schema_id_is_kept() -> None:
    decoded = decode(framed(orjson.dumps(NATIVE), 17))
    assert decoded.schema_id == "17"
    assert decoded.event == decode(NATIVE).event


def test_a_surrogate_in_a_label_is_sanitised() -> None:
    decoded = decode(rb'{"question": "q", "contexts": ["a b"], "answer": "x\ud83d", "labels": {"model": "gpt-\udc80"}}')
    assert (decoded.event.answer, decoded.event.labels["model"]) == ("x\ufffd", "gpt-\ufffd")
    assert decoded.repairs == (Repair.SURROGATE,) * 2


@pytest.mark.parametrize(
    "record",
    [
        {"model": "m", "user": JUDGE_MARK, "messages": [{"role": "user", "content": "x"}]},
        FLAT | {"labels": {"app": JUDGE_MARK}},
        {"request": json.dumps({"user": JUDGE_MARK, "messages": []}), "response": "{}"},
        {"message": json.dumps(FLAT | {"app": JUDGE_MARK}), "@timestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_the_judges_own_traffic_is_ignored(record: Any) -> None:
    decoded = decode(record)
    assert decoded.ignored
    assert decoded.event.id == "qa.events-0-7"


def test_a_user_who_writes_about_the_judge_is_not_ignored() -> None:
    for question in (JUDGE_MARK, f'"user": "{JUDGE_MARK}"', f"What is {JUDGE_MARK}?"):
        assert not decode(FLAT | {"question": question}).ignored
        assert not decode(NATIVE | {"question": question, "answer": question}).ignored


def test_a_deleted_row_is_ignored() -> None:
    assert decode({"payload": {"op": "d", "before": {"id": 1}, "after": None}, "schema": None}).ignored


@pytest.mark.parametrize("question", ["问题", "用户问题", "提问"])
@pytest.mark.parametrize("contexts", ["上下文", "参考资料", "检索结果", "文档", "知识", "引用"])
@pytest.mark.parametrize("answer", ["答案", "回答", "回复", "模型回答"])
def test_chinese_field_names(question: str, contexts: str, answer: str) -> None:
    record = {question: "保修多久？", contexts: [{"标题": "手册", "内容": "保修期为两年。"}], answer: "两年。"}
    for logged in (record, {"日志": {"记录": record}}):
        event = decode(logged).event
        assert (event.question, event.answer) == ("保修多久？", "两年。")
        assert event.contexts == (Chunk("保修期为两年。", source="手册"),)


@pytest.mark.parametrize(
    "extra",
    [
        {"details": {"n1": {"type": "search-dataset-node", "paragraph_list": [{"content": P1, "title": "t"}]}}},
        {"details": {"n0": {"type": "start-node"}, "n1": {"paragraph_list": [{"content": P1, "title": "t"}]}}},
        {"details": {"search_step": {"step_type": "search_step", "paragraph_list": [{"content": P1, "title": "t"}]}}},
        {"details": [{"paragraph_list": [{"content": P1, "title": "t"}]}]},
        {"paragraph_list": [{"content": P1, "title": "t"}]},
        {"details": json.dumps({"n1": {"paragraph_list": [{"content": P1, "title": "t"}]}})},
    ],
)
def test_the_question_of_a_maxkb_record(extra: dict[str, Any]) -> None:
    for record in (
        {"problem_text": Q, "answer_text": A} | extra,
        {"rows": [{"problem_text": Q, "answer_text": A} | extra]},
    ):
        event = decode(record).event
        assert (event.question, event.answer, event.contexts) == (Q, A, (Chunk(P1, source="t"),))


@pytest.mark.parametrize("number", [12345678901234567890123, 18446744073709551617, 2**64 - 1, 2**53 + 1, 10**250 + 1])
def test_whole_number_ids_keep_all_digits(number: int) -> None:
    one = f'{{"text": "{P1}", "id": {number}}}'
    texts = json.dumps(f"[{one}]")
    printed = json.dumps(f"[{{'text': '{P1}', 'id': {number}}}]")
    twice = json.dumps(json.dumps(f"[{one}]"))
    for contexts in (f"[{one}]", texts, printed, twice):
        for extra in ("", f', "note": "\\": ", "labels": {{"n": {number}}}'):
            body = '{"id": %d, "question": "q", "trace_id": %d, "answer": "a", "contexts": %s%s}'
            record = body % (number, number, contexts, extra)
            for raw in (record.encode(), json.dumps(record).encode(), json.dumps({"message": record}).encode()):
                event = decode(raw).event
                assert (event.id, event.trace_id, event.contexts[0].id) == (str(number),) * 3
                assert event.labels == ({"n": str(number)} if extra else {})


def test_a_number_beyond_all_bounds_does_no_harm() -> None:
    body = (
        '{"id": 1%s, "timestamp": 1%s, "feedback": %s, "question": "q", "answer": "a", '
        '"contexts": [{"text": "t", "score": %s}]}'
    )
    for zeros in (30, 308, 309, 5000):
        event = decode((body % (("0" * zeros,) * 2 + ("1" + "0" * zeros,) * 2)).encode()).event
        assert event.timestamp == 1_750_000_000.0
