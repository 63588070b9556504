"""Bytes to JSON: encodings, framing, numbers, duplicate keys, depth (field cases 64, 65, 67, 68, 69)."""

from __future__ import annotations

import gzip
import json
import math
import time
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumer.decoding import json_bytes
from consumer.decoding.json_bytes import Read, read_bytes, read_json
from consumer.decoding.reasons import DecodeError, Repair
from tests.unit.decode_payloads import FLAT, framed

RAW = orjson.dumps(FLAT)


def read(raw: bytes, **changed: Any) -> Read:
    limits: dict[str, Any] = {"max_bytes": 1_000_000, "max_depth": 100, "gzip_allowed": False}
    return read_bytes(raw, **(limits | changed))


def reason(raw: bytes, **changed: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        read(raw, **changed)
    return caught.value.reason


def detail(raw: bytes) -> str:
    with pytest.raises(DecodeError) as caught:
        read(raw)
    return caught.value.detail


# field case 65
def test_byte_order_mark_is_stripped() -> None:
    found = read(b"\xef\xbb\xbf" + RAW)
    assert found.document == FLAT
    assert found.repairs == [Repair.BOM]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("utf-32-be", "UTF-32"),
    ],
)
def test_wide_encodings_are_refused_by_name(encoding: str, name: str) -> None:
    raw = RAW.decode().encode(encoding)
    assert reason(raw) == "bad_encoding"
    assert name in detail(raw)


@pytest.mark.parametrize("raw", ['{"a": "caf\xe9"}'.encode("latin-1"), b'{"a": "\xc0\xaf"}', b'{"a": "\xed\xa0\x80"}'])
def test_latin_1_overlong_and_encoded_surrogates_are_refused(raw: bytes) -> None:
    assert reason(raw) == "bad_encoding"
    assert "UTF-8" in detail(raw)


@pytest.mark.parametrize("encoding", ["gbk", "gb18030"])
@pytest.mark.parametrize("text", ["保修多久？两年。", "\u4fdd", "Warranty 保修"])
def test_chinese_encodings_are_named(encoding: str, text: str) -> None:
    raw = json.dumps({"question": text}, ensure_ascii=False).encode(encoding)
    assert reason(raw) == "bad_encoding"
    assert "GBK or GB18030" in detail(raw)
    assert "GBK" in detail(b"2026-01-01 INFO " + raw)


def test_bytes_that_no_chinese_encoding_has_are_not_called_so() -> None:
    assert "Latin-1" in detail('{"a": "caf\xe9"}'.encode("latin-1"))
    assert "GBK" not in detail('{"a": "caf\xe9"}'.encode("latin-1"))


# field case 67
def test_numbers_that_are_no_numbers_become_null() -> None:
    found = read(
        b'{"a": NaN, "b": -Infinity, "c": 1e400, "d": -0.0, "e": 1%s, "f": %s, "g": true}' % (b"0" * 30, b"9" * 5000)
    )
    assert found.document == {"a": None, "b": None, "c": None, "d": 0.0, "e": 10**30, "f": None, "g": True}
    assert math.copysign(1, found.document["d"]) == -1
    assert found.repairs == [Repair.NON_FINITE_NUMBER] * 4


# field case 68
def test_duplicate_keys_are_noted() -> None:
    found = read(b'{"answer": "a", "x": {"n": 1, "n": 1}, "answer": "b"}')
    assert found.document["answer"] == "b"
    assert found.conflicts == {"answer"}
    assert found.repairs == [Repair.DUPLICATE_KEY] * 2


@pytest.mark.parametrize("gap", ["", " ", "\n\t "])
def test_duplicate_keys_are_found_whatever_stands_before_the_colon(gap: str) -> None:
    assert read(f'{{"a"{gap}: 1, "b": "x", "a"{gap}: 2}}'.encode()).conflicts == {"a"}


def test_keys_that_differ_in_case_are_two() -> None:
    found = read(b'{"Answer": "a", "answer": "b"}')
    assert found.document == {"Answer": "a", "answer": "b"}
    assert not found.repairs


@pytest.mark.parametrize(
    "raw", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 300 + b"]" * 300, b'{"a":' * 900 + b"1" + b"}" * 900]
)
def test_nesting_is_capped(raw: bytes) -> None:
    assert reason(raw) in ("too_deep", "not_json")
    assert reason(b"[" * 101 + b"]" * 101) == "too_deep"
    assert read(b"[" * 100 + b"]" * 100)


def test_unclosed_nesting_does_not_take_long() -> None:
    began = time.perf_counter()
    reason(b'{"a":' * 200_000)
    assert time.perf_counter() - began < 2


# field case 69
def test_schema_registry_header_is_skipped_and_its_id_kept() -> None:
    for raw, schema_id in (
        (framed(RAW, 17), "17"),
        (b"\x00" + (99).to_bytes(8) + RAW, "99"),
        (b"\x03\x00" + b"\xab" * 16 + RAW, "ab" * 16),
    ):
        found = read(raw)
        assert found.document == FLAT
        assert found.schema_id == schema_id


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x00\x00\x00\x01\x06foo\x02\x00\x14",  # Avro behind a header
        b"\x00\x00\x00\x00\x01\x00\x0a\x03abc",  # Protobuf behind a header
        b"Obj\x01\x04\x14avro.codec",
        b"\x0a\x03abc\x12\x04defg\x18\x01\x22\x02\x08\x01",  # bare Protobuf
        b"\x28\xb5\x2f\xfd\x04\x00",  # zstd
        b"\x03\x05" + b"\xab" * 16 + b"x\x9c",  # Glue, compressed
        gzip.compress(RAW, mtime=0),
    ],
)
def test_other_formats_are_refused(raw: bytes) -> None:
    assert reason(raw) == "unsupported_format"


def test_gzip_is_read_only_where_it_is_enabled() -> None:
    assert "decode.gzip" in detail(gzip.compress(RAW))
    found = read(gzip.compress(RAW), gzip_allowed=True)
    assert found.document == FLAT
    assert found.repairs == [Repair.GZIP]
    assert reason(gzip.compress(RAW)[:-9], gzip_allowed=True) == "corrupt_gzip"
    assert reason(b"\x1f\x8bxxxxxxxxxxxx", gzip_allowed=True) == "corrupt_gzip"


def test_a_gzip_bomb_is_stopped_at_the_cap() -> None:
    bomb = gzip.compress(b'{"a": "' + b"0" * 50_000_000 + b'"}')
    assert len(bomb) < 60_000
    assert reason(bomb, gzip_allowed=True) == "too_large"


def test_text_in_front_of_the_object() -> None:
    found = read(b"2026-01-01 INFO qa " + RAW)
    assert found.document == FLAT
    assert found.repairs == [Repair.TEXT_BEFORE_JSON]


@pytest.mark.parametrize("raw", [b"not json", b"{", b'{"a": 1} trailing', b'{"a": 01}', b"{'a': 1", b'{"a": 1,}'])
def test_what_is_no_json(raw: bytes) -> None:
    assert reason(raw) == "not_json"


def test_a_record_that_python_printed() -> None:
    found = read(str(FLAT | {"none": None, "yes": True, "cut": "x\udc80"}).encode())
    assert found.document == FLAT | {"none": None, "yes": True, "cut": "x\ufffd"}
    assert found.repairs == [Repair.PYTHON_REPR, Repair.SURROGATE]


def test_size_and_emptiness() -> None:
    assert reason(b"") == "empty"
    assert reason(b" \n") == "empty"
    assert reason(RAW, max_bytes=10) == "too_large"


def test_lone_surrogates_are_replaced() -> None:
    found = read(rb'{"a\udc80": "x\ud83d", "b": "\ud83d\ude00"}')
    assert found.document == {"a\ufffd": "x\ufffd", "b": "😀"}
    assert found.repairs == [Repair.SURROGATE] * 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


def _slowly(raw: bytes) -> Any:
    found = Read(None)
    return json_bytes._read_slowly(raw, 100, found, prefix_allowed=False)


@given(JSON)
@settings(deadline=None)
@example({"a": 18446744073709551616, "b": -9223372036854775809, "c": 18446744073709551615, "d": 10**25, "e": -(10**19)})
def test_both_readers_give_the_same_document(document: Any) -> None:
    """field case 65: the same result whichever reader takes the bytes"""
    raw = json.dumps(document).encode()
    fast = orjson.loads(raw)
    slow = _slowly(raw)
    assert slow == document
    assert _in_64_bits(slow) == fast
    assert repr(_in_64_bits(slow)) == repr(fast)
    assert read_json(raw, 100, Read(None)) == document


def _in_64_bits(node: Any) -> Any:
    """As orjson reads: a whole number that 64 bits do not hold is a float."""
    if isinstance(node, list):
        return [_in_64_bits(item) for item in node]
    if isinstance(node, dict):
        return {key: _in_64_bits(value) for key, value in node.items()}
    return float(node) if type(node) is int and not -(2**63) <= node < 2**64 else node


@pytest.mark.parametrize("number", [2**64 + 1, -(2**63) - 1, 12345678901234567890123, 10**300 + 1])
@pytest.mark.parametrize("shape", ['{"id": %d}', '{"x": [{"ids": [1, %d]}]}', "[%d]", "%d", "\n{'id': %d}"])
def test_whole_numbers_keep_their_digits(number: int, shape: str) -> None:
    assert str(number) in repr(read((shape % number).encode()).document)


@given(st.text(st.sampled_from('{}[]":,\\ue+-.0123456789aAnullrtsf \n\t'), max_size=30))
@settings(deadline=None, max_examples=500)
def test_what_orjson_accepts_the_slow_reader_accepts(text: str) -> None:
    try:
        fast = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    assert repr(_in_64_bits(_slowly(text.encode()))) == repr(fast)
