"""Records bundled for Faust: all of them, in order, and at the offset of the last."""

from __future__ import annotations

from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from consumer.bundles import MOST, Bundle, BundleScheduler


def fetched(offset: int, partition: int = 0, timestamp: int = 1_790_000_000_000) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord("t", partition, offset, timestamp, 0, b"k", b"v%d" % offset, None, 1, 2, [("h", b"x")])


@given(st.lists(st.integers(1, 3), max_size=1000), st.integers(0, 10**12))
def test_every_record_is_delivered_once_in_order_below_the_offset_of_its_message(steps: list[int], begin: int) -> None:
    offsets = [begin]
    for step in steps:
        offsets.append(offsets[-1] + step)
    delivered = []
    for partition, message in BundleScheduler().iterate({"p": [fetched(o) for o in offsets]}):
        assert partition == "p"
        assert isinstance(message.value, Bundle)
        assert 1 <= len(message.value.records) <= MOST
        assert message.offset == message.value.records[-1].offset
        delivered += [(r.offset, r.value) for r in message.value.records]
    assert delivered == [(o, b"v%d" % o) for o in offsets]


def test_partitions_are_never_mixed_and_a_missing_time_stays_missing() -> None:
    messages = list(BundleScheduler().iterate({0: [fetched(5, 0, -1)], 1: [fetched(7, 1)]}))
    assert [(p, m.partition, m.offset) for p, m in messages] == [(0, 0, 5), (1, 1, 7)]
    assert [r.appended for _, m in messages for r in m.value.records] == [None, 1_790_000_000.0]
    assert list(BundleScheduler().iterate({})) == []
