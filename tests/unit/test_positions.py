"""What is committed is counted, whatever the client delivers."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from consumer.positions import Delivery, Positions


def count(positions: Positions, first: int, last: int) -> list[int]:
    """Take a delivery of offsets first to last as the monitor does; the offsets that were counted."""
    if positions.judge(0, first) is not Delivery.IN_ORDER:
        return []
    counted = [o for o in range(first, last + 1) if not positions.counted_before(0, o)]
    for offset in counted:
        positions.counted(0, offset)
    return counted


def test_only_what_is_counted_is_committed() -> None:
    positions = Positions()
    positions.begin({0: 5})
    assert positions.uncommitted([0]) == {}
    assert count(positions, 5, 8) == [5, 6, 7, 8]
    assert positions.uncommitted([0]) == {0: 9}
    assert positions.uncommitted([]) == {}
    positions.committed({0: 9})
    assert positions.uncommitted([0]) == {}


def test_after_a_rebalance_nothing_is_counted_twice() -> None:
    positions = Positions()
    positions.begin({0: 0})
    count(positions, 0, 99)
    positions.resume({0: 40})
    assert count(positions, 40, 60) == []
    assert count(positions, 61, 120) == list(range(100, 121))
    assert positions.uncommitted([0]) == {0: 121}


def test_what_the_client_left_out_is_asked_for_again() -> None:  # field case 5
    positions = Positions()
    positions.begin({0: 10})
    assert positions.judge(0, 50) is Delivery.AHEAD
    assert positions.next == {0: 10}
    # Fetched before the seek took effect.
    assert positions.judge(0, 60) is Delivery.IN_FLIGHT
    assert count(positions, 10, 49) == list(range(10, 50))
    assert count(positions, 50, 70) == list(range(50, 71))


def test_offsets_that_do_not_exist_are_passed_over_after_one_question() -> None:  # field case 4 B
    positions = Positions()
    positions.begin({0: 10})
    assert positions.judge(0, 50) is Delivery.AHEAD
    assert positions.judge(0, 55) is Delivery.IN_FLIGHT
    assert count(positions, 50, 54) == [50, 51, 52, 53, 54]
    assert positions.judge(0, 60) is Delivery.AHEAD


def test_a_group_that_never_committed_begins_wherever_the_first_record_is() -> None:
    positions = Positions()
    positions.begin({0: None})
    assert count(positions, 1000, 1001) == [1000, 1001]


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sets(st.integers(0, 40), max_size=20), st.data())
def test_every_record_is_counted_exactly_once(existing: list[bool], omitted: set[int], data: st.DataObject) -> None:
    """A log with holes, a client that leaves out deliveries now and then, and rebalances to an older offset."""
    offsets = [o for o, there in enumerate(existing) if there]
    positions = Positions()
    positions.begin({0: 0})
    counted: list[int] = []

    def deliveries(begin: int) -> Iterator[tuple[int, int]]:
        at = begin
        while rest := [o for o in offsets if o >= at]:
            size = data.draw(st.integers(1, 5))
            yield rest[0], rest[:size][-1]
            at = rest[:size][-1] + 1

    begin, step = 0, 0
    for _ in range(500):
        for first, last in deliveries(begin):
            step += 1
            if step in omitted:
                continue
            verdict = positions.judge(0, first)
            if verdict is Delivery.AHEAD:
                begin = positions.next[0]
                break
            if verdict is Delivery.IN_ORDER:
                for offset in (o for o in offsets if first <= o <= last):
                    if not positions.counted_before(0, offset):
                        counted.append(offset)
                        positions.counted(0, offset)
        else:
            if counted == offsets:
                break
            # The last deliveries were omitted: a rebalance brings them.
            begin = data.draw(st.integers(0, positions.next[0]))
            positions.resume({0: begin})
    assert counted == offsets
