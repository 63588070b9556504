"""The scorer: one poll thread that never waits for a score, one inference thread, acknowledged outputs, then offsets.

Poll thread: consume → sample early → decode, decide, redact → admit or shed → hand to inference → write → commit.
Where a remote judge has a part in it, the inference thread hands over to its pool, and a thread of the pool writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError

from consumer.admission import Admission
from consumer.deadletters import dead_letter
from consumer.delivered import Delivered, broker_time, consume, position
from consumer.health import Pulse
from consumer.inference import Inference, Job
from consumer.intake import Ignored, Intake, Raw, Refused, Sampled, SampledOut, Shed
from consumer.judging.handover import Handover
from consumer.offsets import Offsets, Partition, Watermark
from consumer.outputs import OutputImpossible, Outputs
from consumer.partitions import Partitions
from consumer.results import Results, outputs_of
from consumer.sampling import Decision, KeyCheck, KeyIsNotId, Sampler
from consumer.scorer_metrics import Ending, ScorerMetrics
from consumer.settings import Settings
from metrics.evaluation import Evaluation, Evaluator, warm_up_event

log = logging.getLogger(__name__)

RECORDS = 100
"""At most so many records of one poll become work, so that back-pressure acts in time."""
RECORDS_AT_ONCE = 4000
"""The most that one poll takes, however few of them are sampled: more would only hold more memory."""
POLL_SECONDS = 0.05
LAG_SECONDS = 2.0
REVOKE_SECONDS = 5.0
READY_SECONDS = 60.0
ALL_KEYS = 10_000
"""So many first events show whether their key is an id; after that, those that stage 1 keeps do (they are all events of
a sample of keys), so that an event which is dropped costs nothing more."""
JUDGE_STOP_SECONDS = 1.0
"""A thread that waits for a judge cannot be ended; one that is computing is given this long."""


class ScorerStopped(Exception):
    """The scorer cannot go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a scorer is made of, built by `consumer.scoring_process`."""

    consumer: Consumer
    outputs: Outputs
    evaluator: Evaluator
    sampler: Sampler
    intake: Intake
    metrics: ScorerMetrics
    pulse: Pulse
    results: Results
    handover: Handover | None = None
    """To the remote judge, where there is one."""


class Scorer:
    """Runs until `stop`. All clocks are passed in: `now` is monotonic, `wall_clock` is seconds since the epoch."""

    def __init__(
        self,
        parts: Parts,
        settings: Settings,
        *,
        now: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._consumer = parts.consumer
        self._outputs = parts.outputs
        self._sampler = parts.sampler
        self._keeps_early = parts.sampler.early_filter()
        self._intake = parts.intake
        self._metrics = parts.metrics
        self._pulse = parts.pulse
        self._handover = parts.handover
        self._settings = settings
        self._now = now
        self._wall_clock = wall_clock
        self._evaluator = parts.evaluator
        self._results = parts.results
        self._offsets = Offsets()
        self._first_keys = KeyCheck(until=ALL_KEYS)
        self._kept_keys = KeyCheck()
        self._admission = Admission(settings.scorer.max_delay_seconds)
        self.partitions = Partitions(
            parts.consumer,
            self._offsets,
            parts.metrics,
            began=self._restart_key_checks,
            drain=self._drain_partitions,
            now=now,
            wall_clock=wall_clock,
        )
        self._inference = Inference(
            parts.evaluator,
            batch_limit=lambda: self._admission.batch_limit(settings.scorer.batch_events),
            batch_wait_seconds=settings.scorer.batch_wait_ms / 1000,
            now=now,
            served=self._served,
            beat=lambda: parts.pulse.beat("inference"),
        )
        share = parts.sampler.highest_rate if parts.sampler.samples_early else 1.0
        self._most = min(RECORDS_AT_ONCE, int(RECORDS / share))
        self._stopping = False
        self._fatal: str | None = None
        self._last_commit = self._last_lag = now()

    def stop(self) -> None:
        """Ask the loop to end; safe from a signal handler."""
        self._stopping = True

    def failed(self, error: KafkaError) -> None:
        """The consumer's `error_cb`: what cannot mend itself ends the scorer, the rest is noise of a broker away."""
        refused = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) and not self.partitions.ever_assigned
        if error.fatal() or refused:
            self._fatal = f"Kafka refused this client: {error.str()}; check the [kafka] settings"
        else:
            log.debug("kafka: %s", error.str())

    def ready(self) -> tuple[bool, str]:
        """Ready means that offsets advance while there is lag (asked from another thread)."""
        if not self.partitions.ever_assigned:
            return False, "no partition was assigned yet"
        waiting = self._now() - self.partitions.advanced_at
        if waiting > READY_SECONDS and self.partitions.behind:
            return False, f"there is lag and no offset has advanced for {waiting:.0f} s"
        return True, "ok"

    def run(self, stopping: Callable[[], None]) -> None:
        """Consume until `stop`, then drain within half of `scorer.shutdown_seconds` and commit.

        `stopping()` is called when the loop has ended, before the drain.

        Raises:
            ScorerStopped: a loop of ours died, or Kafka refused this client for good.
            OutputImpossible: an output topic is missing or forbidden.
        """
        self._served(1, self._one_event_seconds())
        self._inference.start()
        if self._handover is not None:
            self._handover.pool.start()
        self.partitions.subscribe([*self._settings.topics.events, self._settings.topics.redrive])
        try:
            while not self._stopping:
                self._turn(POLL_SECONDS)
        finally:
            stopping()
            self._shut_down()

    def close(self) -> None:
        """Leave the group. May block while brokers are away: the caller keeps the deadline."""
        self._consumer.close()

    def _one_event_seconds(self) -> float:
        """How long an event of usual size takes, so that overload is known from the first poll on."""
        begun = self._now()
        self._evaluator.evaluate([warm_up_event()])
        return self._now() - begun

    def _turn(self, timeout: float) -> None:
        self._pulse.beat("poll")
        if self._fatal is not None:
            raise ScorerStopped(self._fatal)
        if not self._inference.alive:
            raise ScorerStopped("the inference thread died; its fault is in the log above")
        if self._handover is not None and not self._handover.pool.sound:
            raise ScorerStopped("a judged answer could not be handed on; its fault is in the log above")
        self._take(consume(self._consumer, self._most, timeout))
        self._outputs.serve()
        self._steer()

    def _steer(self) -> None:
        """Back-pressure, commits and gauges."""
        inflight = self._offsets.in_flight()
        most = self._settings.scorer.max_inflight
        queued = self._inference.queued
        limit = self._admission.queue_limit(self._settings.scorer.batch_events, most)
        if not self.partitions.paused and (inflight >= most or queued >= limit):
            self.partitions.pause()
        elif self.partitions.paused and inflight <= most // 2 and queued <= limit // 2:
            self.partitions.resume()
        now = self._now()
        if now - self._last_commit >= self._settings.scorer.commit_interval_seconds:
            self._last_commit = now
            self.partitions.commit_soon()
        if now - self._last_lag >= LAG_SECONDS:
            self._last_lag = now
            self.partitions.measure_lag()
        self._metrics.inflight.set(inflight)
        self._metrics.paused.set(len(self._consumer.assignment()) if self.partitions.paused else 0)

    def _take(self, records: Sequence[Delivered]) -> None:
        """Count, sample early, and take in what is kept. This loop runs for every event on the topic."""
        keeps = self._keeps_early
        check_all = self._settings.sampling.key_is_id and not self._first_keys.done
        check_kept = self._settings.sampling.key_is_id and not self._kept_keys.done
        topic, number = "", -1
        watermark: Watermark | None = None
        delivered = dropped = shed = 0
        for record in records:
            if (error := record.error()) is not None:
                self._consume_error(error)
                continue
            if record.partition() != number or record.topic() != topic:
                self._count_early((topic, number), delivered, dropped, shed)
                delivered = dropped = shed = 0
                topic, number = record.topic(), record.partition()
                watermark = self._offsets.get((topic, number))
            if watermark is None:
                continue
            delivered += 1
            if check_all:
                self._check_key(self._first_keys, record.key())
            if not keeps(record):
                watermark.pass_over(record.offset())
                dropped += 1
                continue
            if check_kept:
                self._check_key(self._kept_keys, record.key())
            if self._sheds_early(record):
                watermark.pass_over(record.offset())
                shed += 1
            else:
                self._take_in(record, (topic, number), watermark)
        self._count_early((topic, number), delivered, dropped, shed)

    def _count_early(self, partition: Partition, delivered: int, dropped: int, shed: int) -> None:
        if delivered:
            self._metrics.events_in.labels(partition[0], str(partition[1])).inc(delivered)
        if dropped:
            self._metrics.ended(partition, Ending.SAMPLED_OUT, dropped)
        if shed:
            self._metrics.shed(partition, shed)

    def _sheds_early(self, record: Delivered) -> bool:
        """While shedding, what one rate for all has sampled is let go before it is decoded; a tombstone stays one."""
        if not self._admission.shedding or not self._sampler.decides_early or not len(record):
            return False
        unit_id = self._sampler.early_id(record.key(), record.headers() if self._sampler.reads_headers else ())
        if unit_id is None:
            return False
        rate = self._sampler.highest_rate
        decision = Decision(True, rate, "rate", self._sampler.unit_of(unit_id))
        return self._admit(decision, broker_time(record) or self._wall_clock()) is None

    def _restart_key_checks(self) -> None:
        self._first_keys.restart()
        self._kept_keys.restart()

    def _check_key(self, check: KeyCheck, key: bytes | None) -> None:
        try:
            check.observe(key)
        except KeyIsNotId as error:
            raise ScorerStopped(str(error)) from None

    def _consume_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            return
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED):
            self._fatal = f"Kafka forbids reading: {error.str()}; grant read on the event topics and the group"
        else:
            log.warning("kafka: %s", error.str())

    def _take_in(self, record: Delivered, partition: Partition, watermark: Watermark) -> None:
        headers = record.headers() or ()
        unit_id = self._sampler.early_id(record.key(), headers)
        raw = Raw(position(record), record.key(), record.value(), headers, broker_time(record))
        offset = raw.source.offset
        taken = self._intake.take(raw, unit_id, self._admit)
        for repair in taken.repairs:
            self._metrics.repairs.labels(repair).inc()
        match taken.result:
            case SampledOut():
                watermark.pass_over(offset)
                self._metrics.ended(partition, Ending.SAMPLED_OUT)
            case Ignored():
                watermark.pass_over(offset)
                self._metrics.ended(partition, Ending.IGNORED)
            case Refused(reason, detail):
                watermark.deliver(offset)
                self._refuse(raw, reason, detail, self._finisher(partition, watermark, offset))
            case Shed():
                watermark.pass_over(offset)
                self._metrics.shed(partition)
            case Sampled() as sampled:
                watermark.deliver(offset)
                finish = self._finisher(partition, watermark, offset)
                self._inference.submit(Job(sampled, lambda evaluation: self._evaluated(sampled, evaluation, finish)))

    def _finisher(self, partition: Partition, watermark: Watermark, offset: int) -> Callable[[Ending], None]:
        """What ends the event: called when its output is acknowledged, in the poll thread."""

        def finish(ending: Ending) -> None:
            watermark.finish(offset)
            self._metrics.ended(partition, ending)

        return finish

    def _refuse(self, raw: Raw, reason: str, detail: str, finish: Callable[[Ending], None]) -> None:
        self._metrics.deadletters.labels(reason).inc()
        # The detail may quote the record, so it goes to the dead letter (a restricted topic), never to the log.
        log.info("dead letter %s: %s", raw.source, reason)
        output = dead_letter(
            self._settings.topics.deadletter,
            reason=reason,
            detail=detail,
            read_at=raw.source,
            logged=raw.broker_time,
            key=raw.key,
            value=raw.value,
            headers=raw.headers,
            keep_payload=self._settings.redaction.deadletter_payload,
        )
        self._outputs.send(output, lambda: finish(Ending.DEAD_LETTERED))

    def _admit(self, decision: Decision, logged: float) -> float | None:
        """The probability with which a sampled event is scored; None where it is shed."""
        self._admission.arrived()
        share = self._admission.admitted_share(self._now(), self._wall_clock() - logged, self._inference.queued)
        self._metrics.admitted_share.set(share)
        probability = decision.probability * share
        return probability if decision.unit < probability else None

    def _served(self, events: int, seconds: float) -> None:
        self._admission.served(events, seconds)
        self._metrics.batch_seconds.observe(seconds)

    def _evaluated(self, sampled: Sampled, evaluation: Evaluation, finish: Callable[[Ending], None]) -> None:
        """The local part is done; a remote judge's part may follow. Runs in the inference thread, which never waits."""
        if self._handover is None:
            self._write(sampled, evaluation, {}, finish)
        else:
            self._handover.take(sampled, evaluation, lambda whole, own: self._write(sampled, whole, own, finish))

    def _write(
        self,
        sampled: Sampled,
        evaluation: Evaluation,
        metric_probabilities: Mapping[str, float],
        finish: Callable[[Ending], None],
    ) -> None:
        """Send what came of an event. Runs in the inference thread or one of the remote judge's; `acknowledged` always
        runs in the poll thread."""
        result = self._results.of(sampled, evaluation, metric_probabilities)
        for name, unscored in result.record.unscored.items():
            self._metrics.unscored.labels(name, unscored.reason).inc()
        for repair in result.repairs:
            self._metrics.repairs.labels(repair).inc()
        ending = Ending.SCORED if result.record.scores else Ending.UNSCORED
        if ending is Ending.SCORED:
            self._metrics.event_age.observe(max(0.0, result.record.scored_time - result.record.event_time))
        outputs = outputs_of(result, self._settings.topics)
        missing = len(outputs)

        def acknowledged() -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                finish(ending)

        for output in outputs:
            self._outputs.send(output, acknowledged)

    def _drain_partitions(self, partitions: Iterable[Partition]) -> None:
        """Before partitions are given up: let what is in flight finish, within one deadline for all of it."""
        self._drain(list(partitions), self._now() + REVOKE_SECONDS)

    def _shut_down(self) -> None:
        """Finish what is in flight, within one deadline; what is not finished was not committed and comes again."""
        if not self.partitions.paused:
            self.partitions.pause()
        self._drain(None, self._now() + self._settings.scorer.shutdown_seconds / 2)
        left = self._offsets.in_flight()
        self.partitions.commit_now()
        self._inference.stop(self._settings.scorer.shutdown_seconds / 4)
        if self._handover is not None:
            self._handover.pool.stop(JUDGE_STOP_SECONDS)
        self._outputs.abandon()
        log.info("stopped: %s; %d in flight, to be read again", self._metrics.tally(), left)

    def _drain(self, partitions: Sequence[Partition] | None, deadline: float) -> None:
        while self._offsets.in_flight(partitions) and self._now() < deadline and self._inference.alive:
            self._pulse.beat("poll")
            try:
                self._outputs.serve(POLL_SECONDS)
            except OutputImpossible as error:
                self._fatal = str(error)
                return
