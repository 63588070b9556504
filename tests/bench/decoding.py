"""Time to decode one record: `python -m tests.bench.decoding`. The native form of 3 kB is the hot path."""

from __future__ import annotations

import timeit
from typing import Any

import orjson

from consumer.decode import Decoder
from consumer.settings import Decode
from tests.unit.decode_payloads import PAYLOADS

NATIVE = {
    "id": "e-1",
    "timestamp": "2026-11-29T10:00:00Z",
    "question": "How long is the warranty on the lamp?",
    "contexts": [
        {"id": f"doc-{n}", "text": ("Some words of a passage. " * 23).strip(), "score": 0.8, "source": "handbook.pdf"}
        for n in range(5)
    ],
    "answer": ("Two years. " * 15).strip(),
    "labels": {"app": "help", "model": "m-1"},
}


def main() -> None:
    decoder = Decoder(Decode())
    cases: list[tuple[str, Any]] = [("native, 3 kB", NATIVE), ("native with another key", NATIVE | {"tokens": 9})]
    cases += [(producer, record) for producer, record, _ in PAYLOADS]
    for name, record in cases:
        raw = orjson.dumps(record)
        best = min(
            timeit.repeat(lambda r=raw: decoder.decode(r, fallback_id="x", broker_time=None), number=50, repeat=9)
        )
        print(f"{name:34} {len(raw):6} bytes {best / 50 * 1e6:8.1f} µs")


if __name__ == "__main__":
    main()
