"""The shared real shapes decode to what a person reads out of them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from consumer.decode import Decoder
from consumer.decoding.scalars import read_time
from consumer.settings import Decode
from metrics.event import encode_event
from tests.services import SHARED

INDEX = SHARED / "payloads" / "index.jsonl"
CASES: list[dict[str, Any]] = (
    [json.loads(line) for line in INDEX.read_text("utf-8").splitlines()] if INDEX.exists() else []
)
DECODER = Decoder(Decode())


def values(case: dict[str, Any]) -> list[bytes]:
    """The file itself and, where it is the dump of a framed Kafka record, the record's own bytes."""
    raw = (SHARED / "payloads" / case["file"]).read_bytes()
    dump = json.loads(raw)
    return [raw, base64.b64decode(dump["value_base64"])] if "value_base64" in dump else [raw]


@pytest.mark.skipif(not CASES, reason="../shared/payloads is absent")
@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_a_real_shape(case: dict[str, Any]) -> None:
    expected = case["expected"]
    broker_time = 1_717_764_210.0
    for value in values(case):
        event = DECODER.decode(value, fallback_id="t-0-1", broker_time=broker_time).event
        assert event.question == expected["question"]
        assert [chunk.text for chunk in event.contexts] == expected["contexts"]
        assert event.answer == expected["answer"]
        assert event.reference == expected["reference"]
        assert event.id == (expected["id"] or "t-0-1")
        assert event.timestamp == (read_time(expected["timestamp"], []) or broker_time)
        assert DECODER.decode(encode_event(event), fallback_id="x", broker_time=None).event == event
