"""Many records as one message to Faust: its own work for a message is several times what a score record needs.

Faust asks a scheduler in which order to deliver what was fetched. This one delivers up to `MOST` neighbouring records
of a partition as one message, at the offset of the last. An offset is committed when the whole message is done, so
that nothing is committed before it is counted; what is delivered again after a rebalance is known by its own offset.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MOST = 200


class Record(NamedTuple):
    """One record of the log; `appended` is the broker's timestamp in seconds since the epoch, where it has one."""

    offset: int
    appended: float | None
    value: bytes | None


class Bundle(bytes):
    """The value of a bundled message: empty bytes for Faust, which passes them on as they are, and our records."""

    records: tuple[Record, ...] = ()


class BundleScheduler:
    """Bundles neighbouring records of a partition. Faust makes one without arguments (setting `ConsumerScheduler`)."""

    def iterate(self, records: Mapping[Any, Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        """(partition, message) for everything that was fetched, in the order of the offsets."""
        for partition, fetched in records.items():
            for begin in range(0, len(fetched), MOST):
                yield partition, bundled(fetched[begin : begin + MOST])


def bundled(fetched: Sequence[Any]) -> Any:
    """One client record that stands for all of `fetched` (not empty), at the offset of the last."""
    bundle = Bundle()
    bundle.records = tuple(
        Record(r.offset, r.timestamp / 1000.0 if r.timestamp and r.timestamp > 0 else None, r.value) for r in fetched
    )
    return dataclasses.replace(fetched[-1], key=None, value=bundle, headers=())
