"""Verdicts about a reader that stands still; time is passed in."""

from __future__ import annotations

from consumer.watch import Offsets, Watch


def offsets(end: int, committed: int) -> Offsets:
    return Offsets({0: end}, {0: committed})


def test_an_idle_topic_is_never_a_verdict() -> None:  # field case 10
    watch = Watch(60.0, 180.0)
    for now in range(0, 3600, 5):
        assert watch.verdict(now, offsets(100, 100), {0: 100}) is None
        # Offsets that no reader ever sees (marks of transactions) are no work either.
        assert watch.verdict(now, offsets(102, 100), {0: 100}) is None


def test_reading_that_stands_still_while_records_come_is_one_after_the_limit() -> None:  # field case 10
    watch = Watch(60.0, 180.0)
    assert watch.verdict(0, offsets(100, 100), {0: 100}) is None
    verdicts = {now: watch.verdict(now, offsets(100 + now, 100), {0: 100}) for now in range(5, 100, 5)}
    assert all(verdicts[now] is None for now in range(5, 60, 5))
    assert verdicts[95] == "partition 0 of the score topic is no longer read: 95 records wait"


def test_reading_that_moves_is_none() -> None:
    watch = Watch(60.0, 180.0)
    for now in range(0, 600, 5):
        assert watch.verdict(now, offsets(1000 + 10 * now, now), {0: 1 + now}) is None


def test_reading_without_committing_is_one() -> None:  # field case 6
    watch = Watch(60.0, 180.0)
    verdicts = [watch.verdict(now, offsets(1000 + now, 50), {0: 1000 + now}) for now in range(0, 100, 5)]
    assert verdicts[5] is None
    assert verdicts[-1] == "partition 0 of the score topic is read, but no longer committed"


def test_a_standby_waits_longer_because_the_other_may_be_reading_back() -> None:
    watch = Watch(60.0, 180.0)
    verdicts = {now: watch.verdict(now, offsets(1000 + now, 50), None) for now in range(0, 260, 5)}
    assert all(verdicts[now] is None for now in range(0, 180, 5))
    assert verdicts[255] == "nobody reads partition 0 of the score topic: 1205 records wait"


def test_a_broker_away_or_a_rebalance_begins_anew() -> None:
    watch = Watch(60.0, 180.0)
    for now in range(0, 1000, 50):
        assert watch.verdict(now, offsets(100 + now, 100), {0: 100}) is None
        watch.forget()
