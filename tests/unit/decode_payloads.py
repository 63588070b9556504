"""Records as other producers log them, with texts of our own: decode_payloads.jsonl, one a line.

The shapes are the producers'. Every record says the same; `expected` has what differs: another question, contexts or
answer, a reference, an id, a time, the chunks' ids or scores, the turns before.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Q = "How long is the warranty on the lamp?"
P1 = "The lamp has a warranty of two years."
P2 = "Batteries are covered for six months only."
A = "Two years, and six months for the batteries."

FLAT = {"question": Q, "contexts": [P1, P2], "answer": A}

_LINES = (Path(__file__).with_suffix(".jsonl")).read_text("utf-8").splitlines()
PAYLOADS: list[tuple[str, Any, dict[str, Any]]] = [
    (line["producer"], line["record"], line["expected"]) for line in map(json.loads, _LINES)
]


def framed(payload: bytes, schema_id: int) -> bytes:
    """The wire format of a schema registry."""
    return b"\x00" + schema_id.to_bytes(4) + payload


def gzipped(payload: bytes) -> bytes:
    return gzip.compress(payload)
