from hypothesis import given
from hypothesis import strategies as st

from consumer.offsets import Offsets, Watermark


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[int, bool]], list[int]]:
    """Delivered offsets with holes, each in flight or passed over; and the order in which those in flight finish."""
    offsets = sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=40)))
    delivered = [(offset, draw(st.booleans())) for offset in offsets]
    waiting = [offset for offset, in_flight in delivered if in_flight]
    return delivered, draw(st.permutations(waiting))


@given(histories())
def test_never_commits_past_what_is_unfinished_and_always_reaches_the_end(
    history: tuple[list[tuple[int, bool]], list[int]],
) -> None:
    delivered, order = history
    watermark = Watermark()
    open_offsets: set[int] = set()
    for offset, in_flight in delivered:
        (watermark.deliver if in_flight else watermark.pass_over)(offset)
        if in_flight:
            open_offsets.add(offset)
    last = -1
    for offset in order:
        assert watermark.committable == min(open_offsets)
        assert watermark.committable >= last
        last = watermark.committable
        watermark.finish(offset)
        open_offsets.discard(offset)
    assert watermark.committable == delivered[-1][0] + 1
    assert watermark.in_flight == 0


def test_a_hole_is_never_waited_for() -> None:
    """Field case 4 B: offsets 1, 2, 4, 5, 9 of a compacted topic commit as 10."""
    watermark = Watermark()
    for offset in (1, 2, 4, 5, 9):
        watermark.deliver(offset)
    for offset in (9, 4, 1, 5, 2):
        watermark.finish(offset)
    assert watermark.committable == 10


def test_highest_finished_is_no_watermark() -> None:
    """Field case 13: 5 of 10 blocks, so a restart begins at 5."""
    watermark = Watermark()
    for offset in range(10):
        watermark.deliver(offset)
    for offset in (*range(5), *range(6, 10)):
        watermark.finish(offset)
    assert watermark.committable == 5


def test_repeated_and_unknown_finishes_are_nothing() -> None:
    watermark = Watermark()
    watermark.deliver(3)
    watermark.deliver(4)
    watermark.finish(4)
    watermark.finish(4)
    watermark.finish(99)
    assert (watermark.committable, watermark.in_flight) == (3, 1)


def test_nothing_is_committed_for_a_partition_that_was_given_up() -> None:
    """Field case 12/14: a result that lands after the partition was lost moves nothing, also when it came back."""
    offsets = Offsets()
    offsets.assign([("t", 0)])
    before = offsets.get(("t", 0))
    assert before is not None
    before.deliver(7)
    offsets.drop([("t", 0)])
    before.finish(7)
    assert offsets.to_commit() == {}
    offsets.assign([("t", 0)])
    after = offsets.get(("t", 0))
    assert after is not None
    after.deliver(7)
    before.finish(7)
    assert offsets.to_commit() == {("t", 0): 7}


def test_only_what_moved_is_committed() -> None:
    offsets = Offsets()
    offsets.assign([("t", 0), ("t", 1)])
    watermark = offsets.get(("t", 0))
    assert watermark is not None
    assert offsets.to_commit() == {}
    watermark.pass_over(5)
    assert offsets.to_commit() == {("t", 0): 6}
    offsets.committed({("t", 0): 6})
    assert offsets.to_commit() == {}
