"""Every shape of tests/unit/decode_payloads.py, and the shared real ones where they are there."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from consumer.decode import Decoded, Decoder
from consumer.settings import Decode
from metrics.event import encode_event
from tests.unit.decode_payloads import P1, P2, PAYLOADS, A, Q

DECODER = Decoder(Decode())


def decode(record: Any) -> Decoded:
    return DECODER.decode(orjson.dumps(record), fallback_id="t-0-1", broker_time=1_750_000_000.0)


@pytest.mark.parametrize(("record", "expected"), [p[1:] for p in PAYLOADS], ids=[p[0] for p in PAYLOADS])
def test_record_of_another_producer(record: Any, expected: dict[str, Any]) -> None:
    event = decode(record).event
    assert event.question == expected.get("question", Q)
    assert [chunk.text for chunk in event.contexts] == expected.get("contexts", [P1, P2])
    assert event.answer == expected.get("answer", A)
    assert event.reference == expected.get("reference")
    if "id" in expected:
        assert event.id == expected["id"]
    if "time" in expected:
        assert event.timestamp == expected["time"]
    if "ids" in expected:
        assert [chunk.id for chunk in event.contexts] == expected["ids"]
    if "scores" in expected:
        assert [chunk.score for chunk in event.contexts] == expected["scores"]
    assert [turn.content for turn in event.conversation] == expected.get("turns", [])


@pytest.mark.parametrize("record", [p[1] for p in PAYLOADS], ids=[p[0] for p in PAYLOADS])
def test_its_event_decodes_to_itself(record: Any) -> None:
    event = decode(record).event
    again = DECODER.decode(encode_event(event), fallback_id="other", broker_time=None)
    assert again.event == event
    assert (again.form, again.repairs) == ("native", ())
