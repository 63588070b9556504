"""No input raises anything but DecodeError, and a decoded event encodes and decodes to itself."""

from __future__ import annotations

import random
from typing import Any

import orjson
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from consumer.decode import Decoded, DecodeError, Decoder
from consumer.decoding.reasons import Refusal
from consumer.settings import Decode
from metrics.event import Chunk, Event, Turn, encode_event
from tests.unit.decode_payloads import FLAT, PAYLOADS, framed, gzipped

DECODER = Decoder(Decode(gzip=True, max_bytes=200_000, max_chunks=50, max_characters=50_000))
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["text", "content", "question", "contexts", "answer", "messages", "role", "payload", "message"])
        | st.text(max_size=6), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
STRIPPED = TEXTS.map(str.strip)
FULL = STRIPPED.filter(bool)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


REASONS: set[str] = set()


def attempt(value: bytes) -> Decoded | None:
    try:
        return DECODER.decode(value, fallback_id="t-0-1", broker_time=1_750_000_000.0)
    except DecodeError as error:
        REASONS.add(error.reason)
        if error.reason == Refusal.DECODER_FAULT:
            raise
        return None


def assert_decodes_to_itself(decoded: Decoded) -> None:
    again = DECODER.decode(encode_event(decoded.event), fallback_id="other", broker_time=None)
    assert again.event == decoded.event
    assert again.repairs == ()


@given(st.binary(max_size=400))
@example(b"")
@example(b"\x00\x00\x00\x00\x01")
@example(b"\x1f\x8b\x08")
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"\xff\xfe{\x00}\x00")
@QUIET
def test_any_bytes(value: bytes) -> None:
    attempt(value)


@given(JSON)
@QUIET
def test_any_json(document: Any) -> None:
    decoded = attempt(orjson.dumps(document))
    if decoded is not None:
        assert_decodes_to_itself(decoded)


@given(question=JSON, contexts=JSON, answer=JSON, extra=JSON)
@QUIET
def test_any_values_under_the_native_names(question: Any, contexts: Any, answer: Any, extra: Any) -> None:
    record = {"question": question, "contexts": contexts, "answer": answer, "labels": extra, "timestamp": extra,
              "id": extra, "conversation": extra, "feedback": extra, "reference": extra}  # fmt: skip
    decoded = attempt(orjson.dumps(record))
    if decoded is not None:
        assert_decodes_to_itself(decoded)


@given(st.integers(0, len(PAYLOADS) - 1), st.integers(0, 2**32), st.lists(JSON, min_size=1, max_size=3))
@settings(QUIET, max_examples=400)
def test_real_shapes_with_values_exchanged(which: int, seed: int, values: list[Any]) -> None:
    document = orjson.loads(orjson.dumps(PAYLOADS[which][1]))
    chance = random.Random(seed)
    for value in values:
        _exchange(document, value, chance)
    decoded = attempt(orjson.dumps(document))
    if decoded is not None:
        assert_decodes_to_itself(decoded)


def _exchange(node: Any, value: Any, chance: random.Random) -> None:
    """Put `value` somewhere into a document."""
    while isinstance(node, (dict, list)) and node:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        place = chance.choice(places)
        inner = node[place]
        if not isinstance(inner, (dict, list)) or chance.random() < 0.3:
            node[place] = value
            return
        node = inner


@given(st.integers(0, len(PAYLOADS) - 1), st.integers(0, 2**32), st.integers(1, 6))
@settings(QUIET, max_examples=300)
def test_real_shapes_with_bytes_broken(which: int, seed: int, faults: int) -> None:
    raw = bytearray(orjson.dumps(PAYLOADS[which][1]))
    chance = random.Random(seed)
    for _ in range(faults):
        raw[chance.randrange(len(raw))] = chance.choice(b'\x00\xff"\\{}[]:,0e\xc3\n ')
    for value in (bytes(raw), framed(bytes(raw), 7), gzipped(bytes(raw)), bytes(raw[: chance.randrange(len(raw))])):
        decoded = attempt(value)
        if decoded is not None:
            assert_decodes_to_itself(decoded)


EVENTS = st.builds(
    Event,
    id=FULL.filter(lambda t: len(t) <= 256),
    timestamp=st.integers(1_000_000_000 * 10**6, 4_099_999_999 * 10**6).map(lambda us: us / 1e6),
    question=st.none() | STRIPPED,
    contexts=st.lists(
        st.builds(Chunk, text=FULL, id=st.none() | FULL, score=st.none() | FINITE, source=st.none() | FULL), max_size=5
    ).map(tuple),
    answer=st.none() | STRIPPED,
    reference=st.none() | FULL,
    trace_id=st.none() | FULL,
    conversation=st.lists(st.builds(Turn, role=st.sampled_from(["user", "assistant", "system", "tool"]), content=FULL),
                          max_size=4).map(tuple),
    labels=st.dictionaries(FULL, FULL, max_size=4),
    feedback=st.none() | FINITE,
)  # fmt: skip


@given(EVENTS)
@example(Event("1", 1_760_000_000.0, '[{"role": "user", "content": "x"}]', (Chunk('["a", "b"]'),), '{"answer": "y"}'))
@example(Event("1", 1_760_000_000.0, "q", (Chunk("page_content='a' metadata={}"),), "a"))
@example(Event("1", 1_760_000_000.0, 'say "answer": twice, "answer": so', (), 'x "id": y'))
@QUIET
def test_every_event_decodes_to_itself(event: Event) -> None:
    decoded = DECODER.decode(encode_event(event), fallback_id="other", broker_time=None)
    assert decoded.event == event
    assert (decoded.form, decoded.repairs) == ("native", ())


def test_a_flat_record_passes_the_same_helpers() -> None:
    """The helpers above do decode: they are not green because everything is refused."""
    raw = orjson.dumps(FLAT)
    assert all(attempt(value) is not None for value in (raw, framed(raw, 7), gzipped(raw)))
    assert attempt(b"nothing") is None
    assert REASONS.issubset({str(reason) for reason in Refusal})
