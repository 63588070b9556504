"""The scorer on a real Kafka: what is delivered, finished, committed and counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import orjson
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from consumer.outputs import OutputImpossible
from consumer.record import ScoreRecord, decode_record
from consumer.sampling import unit_interval
from consumer.scorer import ScorerStopped
from consumer.settings import Settings
from metrics.metric import Text
from tests.integration.scorer_harness import (
    HashEmbedder,
    committed,
    event,
    produce,
    read_all,
    running_scorer,
    test_settings,
)
from tests.processes import wait_until


def records_of(settings: Settings) -> list[ScoreRecord]:
    found = read_all(settings.kafka.bootstrap_servers, settings.topics.scores)
    return [decode_record(record.value) for record in found]


def events_topic(settings: Settings) -> str:
    return settings.topics.events[0]


def test_every_event_becomes_one_score_record_and_its_offset_is_committed(kafka: str) -> None:
    settings = test_settings(kafka)
    with running_scorer(settings) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(200)])
        wait_until(lambda: scorer.ended()["scored"] == 200, 30, "200 scored")
        wait_until(lambda: committed(settings, events_topic(settings)) == 200, 10, "commit of 200")
        assert scorer.value("events_in_total") == 200
        assert scorer.value("inflight_events") == 0
    records = records_of(settings)
    assert sorted(r.id for r in records) == sorted(f"e{n}" for n in range(200))
    assert all(-1 <= r.scores["topic_similarity"].value <= 1 for r in records)
    assert b"leave" not in b"".join(r.value or b"" for r in read_all(kafka, settings.topics.scores))


def test_bad_records_are_dead_lettered_with_their_place_and_the_rest_goes_on(kafka: str) -> None:
    """Field cases 11, 17, 64: tombstone, empty value, one byte, not JSON, not an object, missing answer."""
    settings = test_settings(kafka)
    bad: list[bytes | None] = [
        None,
        b"",
        b"x",
        b"not json",
        b"[]",
        b'"text"',
        b"123",
        b"null",
        b'{"question": "q", "contexts": []}',
    ]
    with running_scorer(settings) as scorer:
        values: list[dict[str, object] | bytes | None] = []
        for number in range(20):
            values.append(event(number))
            if number < len(bad):
                values.append(bad[number])
        produce(kafka, events_topic(settings), values)
        wait_until(lambda: sum(scorer.ended().values()) == 29, 30, "29 ended")
        assert scorer.ended() == {"sampled_out": 0, "ignored": 2, "scored": 20, "unscored": 0, "dead_lettered": 7}
        wait_until(lambda: committed(settings, events_topic(settings)) == 29, 10, "commit of 29")
    letters = read_all(kafka, settings.topics.deadletter)
    by_offset = {int(letter.headers["groundwatch-offset"] or b"-1"): letter for letter in letters}
    assert sorted(by_offset) == [5, 7, 9, 11, 13, 15, 17]
    assert by_offset[7].value == b"not json"
    assert by_offset[17].headers["groundwatch-reason"] == b"missing:answer"


@pytest.mark.full
def test_an_event_whose_output_is_not_acknowledged_is_read_again(kafka: str) -> None:
    """Field case 13: event 5 of 10 blocks in the scorer, which is then stopped: a restart begins at 5."""
    settings = test_settings(kafka, scorer={"batch_events": 1, "shutdown_seconds": 2.0})
    release = threading.Event()

    def block_on_five(texts: Sequence[Text]) -> None:
        if any("grade 5 " in text.content for text in texts):
            # Far longer than the test: were it to end by itself, event 5 would be scored like any other.
            release.wait(300)

    with running_scorer(settings, HashEmbedder(before=block_on_five)) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(10)])
        wait_until(lambda: scorer.ended()["scored"] == 5, 20, "five scored")
        scorer.stop()
        release.set()
    assert committed(settings, events_topic(settings)) == 5
    with running_scorer(settings) as again:
        wait_until(lambda: again.ended()["scored"] == 5, 30, "the other five")
    assert {r.id for r in records_of(settings)} == {f"e{n}" for n in range(10)}


@pytest.mark.full
def test_a_slow_score_never_loses_the_group(kafka: str) -> None:
    """Field case 12: poll interval 6 s, a batch takes 9 s: the poll thread goes on polling, nothing is re-assigned."""
    impatient = {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000}
    settings = test_settings(kafka, kafka={"consumer": impatient})
    with running_scorer(settings, HashEmbedder(before=lambda texts: time.sleep(9))) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(10)])
        wait_until(lambda: scorer.ended()["scored"] == 10, 60, "ten scored")
        assert scorer.value("rebalances_total", kind="assigned") == 1
        assert scorer.value("rebalances_total", kind="lost") == 0


def test_too_much_in_flight_pauses_and_goes_on_polling(kafka: str) -> None:
    settings = test_settings(kafka, scorer={"max_inflight": 20, "batch_events": 4})
    with running_scorer(settings, HashEmbedder(before=lambda texts: time.sleep(0.05))) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(200)])
        wait_until(lambda: scorer.value("paused_partitions") > 0, 10, "pause")
        wait_until(lambda: scorer.ended()["scored"] == 200, 30, "200 scored")
        assert scorer.value("paused_partitions") == 0
        assert scorer.value("unscored_total", reason="shed") == 0
    assert len(records_of(settings)) == 200


def test_an_old_backlog_is_shed_by_hash_and_the_weights_make_up_for_it(kafka: str) -> None:
    settings = test_settings(
        kafka, scorer={"max_delay_seconds": 0.5, "batch_events": 4, "max_inflight": 4000}, topics={}
    )
    embedder = HashEmbedder(before=lambda texts: time.sleep(0.02))
    with running_scorer(settings) as scorer:  # the topics are made here
        scorer.stop()
    produce(kafka, events_topic(settings), [event(n) for n in range(6000)])
    time.sleep(1)
    with running_scorer(settings, embedder) as scorer:
        wait_until(lambda: sum(scorer.ended().values()) == 6000, 60, "6000 ended")
        assert scorer.value("unscored_total", metric="topic_similarity", reason="shed") > 500
        wait_until(lambda: committed(settings, events_topic(settings)) == 6000, 10, "commit of 6000")
    records = records_of(settings)
    shed = 6000 - len(records)
    assert shed > 500, "what is shed has no record, only its count"
    weights = [1 / r.scores["topic_similarity"].probability for r in records]
    assert abs(sum(weights) / 6000 - 1) < 0.25
    for record in records:
        probability = record.scores["topic_similarity"].probability
        assert record.probability == probability
        assert unit_interval(settings.sampling.salt, record.id.encode()) < probability


def test_stage_one_keeps_exactly_the_events_below_the_rate(kafka: str) -> None:
    settings = test_settings(kafka, sampling={"rate": 0.2, "id_header": "id"})
    ids = [f"e{n}" for n in range(500)]
    with running_scorer(settings) as scorer:
        for number, own in enumerate(ids[:20]):
            produce(kafka, events_topic(settings), [event(number)], headers=[("id", own.encode())])
        produce(kafka, events_topic(settings), [event(n) for n in range(20, 500)])
        wait_until(lambda: sum(scorer.ended().values()) == 500, 30, "500 ended")
    expected = {own for own in ids if unit_interval(settings.sampling.salt, own.encode()) < 0.2}
    records = records_of(settings)
    assert {r.id for r in records} == expected
    assert {r.probability for r in records} == {0.2}


def test_a_key_that_is_plainly_no_id_stops_the_scorer_with_one_line(kafka: str) -> None:
    settings = test_settings(kafka, sampling={"key_is_id": True})
    with running_scorer(settings) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(3000)], key=b"session-1")
        wait_until(lambda: bool(scorer.failure), 30, "refusal")
    assert isinstance(scorer.failure[0], ScorerStopped)
    assert "key_is_id" in str(scorer.failure[0])


def test_an_oversized_record_is_refused_by_our_own_limit_and_its_neighbours_are_scored(kafka: str) -> None:
    """Field case 18; the dead letter is too large for its topic as well, and is sent without the payload."""
    settings = test_settings(kafka, decode={"max_bytes": 200_000})
    with running_scorer(settings) as scorer:
        admin = AdminClient({"bootstrap.servers": kafka})
        _allow_bytes(admin, events_topic(settings), 16_000_000)
        large = event(1, contexts=[{"text": "x" * 30_000} for _ in range(400)])
        produce(kafka, events_topic(settings), [event(0), large, event(2)])
        wait_until(lambda: sum(scorer.ended().values()) == 3, 30, "three ended")
        assert scorer.ended()["dead_lettered"] == 1
        assert scorer.value("deadletters_total", reason="too_large") == 1
    letter = read_all(kafka, settings.topics.deadletter)[0]
    assert (letter.value, letter.headers["groundwatch-truncated"]) == (None, b"1")


def _allow_bytes(admin: AdminClient, topic: str, size: int) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


@pytest.mark.full
def test_an_output_topic_that_vanishes_stops_consumption_with_a_clear_error(kafka: str) -> None:
    settings = test_settings(kafka)
    with running_scorer(settings) as scorer:
        admin = AdminClient({"bootstrap.servers": kafka})
        for future in admin.delete_topics([settings.topics.scores]).values():
            future.result()
        produce(kafka, events_topic(settings), [event(0)])
        wait_until(lambda: bool(scorer.failure), 60, "stop")
    assert isinstance(scorer.failure[0], OutputImpossible)
    assert "groundwatch topics create" in str(scorer.failure[0])
    assert committed(settings, events_topic(settings)) in (-1001, 0)


def test_an_outage_longer_than_the_retention_goes_on_from_the_oldest_and_counts_what_is_missing(kafka: str) -> None:
    settings = test_settings(kafka)
    with running_scorer(settings) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(10)])
        wait_until(lambda: committed(settings, events_topic(settings)) == 10, 20, "commit of 10")
    produce(kafka, events_topic(settings), [event(n) for n in range(10, 60)])
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_records([TopicPartition(events_topic(settings), 0, 40)]).values():
        future.result()
    with running_scorer(settings) as scorer:
        wait_until(lambda: scorer.ended()["scored"] == 20, 30, "the remaining 20")
        assert scorer.value("offset_resets_total") == 1
        assert scorer.value("events_missing_total") == 30


def test_a_fault_in_the_embedder_is_unscored_and_the_offset_advances(kafka: str) -> None:
    settings = test_settings(kafka)

    def fail(_: Sequence[Text]) -> None:
        raise RuntimeError("out of memory")

    with running_scorer(settings, HashEmbedder(before=fail)) as scorer:
        produce(kafka, events_topic(settings), [event(n) for n in range(5)])
        wait_until(lambda: scorer.ended()["unscored"] == 5, 20, "five unscored")
        assert scorer.value("unscored_total", metric="topic_similarity", reason="embedder_error") == 5
        wait_until(lambda: committed(settings, events_topic(settings)) == 5, 10, "commit")


def test_a_redriven_record_keeps_its_first_position_as_id(kafka: str) -> None:
    settings = test_settings(kafka)
    nameless = event(1)
    del nameless["id"]
    headers = [("groundwatch-topic", b"qa.events"), ("groundwatch-partition", b"3"), ("groundwatch-offset", b"77")]
    with running_scorer(settings) as scorer:
        produce(kafka, settings.topics.redrive, [orjson.dumps(nameless)], headers=headers)
        wait_until(lambda: scorer.ended()["scored"] == 1, 20, "one scored")
    record = records_of(settings)[0]
    assert (record.id, record.source.offset) == ("qa.events-3-77", 77)


@pytest.mark.full
def test_workers_coming_and_going_lose_nothing(kafka: str) -> None:
    """Field cases 5, 6, 14: a second scorer joins and leaves four times under load; no gap, few duplicates, and what
    was in flight at a revoke is finished and committed before the partition is given up."""
    settings = test_settings(kafka, topics={"partitions": 4}, scorer={"batch_events": 8})
    slow = HashEmbedder(before=lambda texts: time.sleep(0.02))
    total = 2000
    with running_scorer(settings, slow) as first:

        def feed() -> None:
            for start in range(0, total, 50):
                produce(kafka, events_topic(settings), [event(n) for n in range(start, start + 50)])
                time.sleep(0.3)

        feeder = threading.Thread(target=feed)
        feeder.start()
        for _ in range(3):
            with running_scorer(settings, slow):
                time.sleep(4)
            time.sleep(1)
        feeder.join()
        wait_until(
            lambda: sum(committed(settings, events_topic(settings), p) for p in range(4)) == total, 60, "all committed"
        )
        assert first.value("rebalances_total", kind="lost") == 0
    ids = [r.id for r in records_of(settings)]
    assert set(ids) == {f"e{n}" for n in range(total)}
    assert len(ids) - total <= 20, "revokes drain first, so nearly nothing is scored twice"
