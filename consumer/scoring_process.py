"""The scorer process, from settings to a running loop and out again."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, ProcessCollector

from consumer import kafka_config
from consumer.decode import Decoder
from consumer.decoding.mapping import MappingError
from consumer.embedders import build_evaluator
from consumer.health import HealthServer, ListenError, Pulse
from consumer.heap import keep_heap_small
from consumer.intake import Intake
from consumer.judge_settings import Judge
from consumer.judging.handover import Handover
from consumer.judging.pool import RemotePool
from consumer.judging.remote_judge import RemoteJudge
from consumer.outputs import OutputImpossible, Outputs
from consumer.record_building import versions_in_force
from consumer.redaction import Redactor
from consumer.results import Results
from consumer.sampling import Sampler
from consumer.scorer import Parts, Scorer, ScorerStopped
from consumer.scorer_metrics import ScorerMetrics
from consumer.segments import Segmenter
from consumer.settings import Settings
from consumer.stopping import Stopping, leave_after
from consumer.thresholds import ThresholdTable, thresholds_in_force
from metrics.baseline import BaselineError
from metrics.evaluation import Evaluator, Remote
from metrics.model_files import ModelError

log = logging.getLogger(__name__)

BROKER_SECONDS = 5.0
FAULTS = (
    ScorerStopped,
    OutputImpossible,
    ListenError,
    MappingError,
    ModelError,
    BaselineError,
    ValueError,
    kafka_config.KafkaConfigError,
)
"""What `run` raises with a message for a person."""


def run(settings: Settings, stopping: Stopping) -> None:
    """Score until SIGTERM or SIGINT, which `stopping` hears.

    Raises:
        ScorerStopped: it cannot go on.
        OutputImpossible: an output topic is missing or forbidden.
        ListenError: the metrics address is taken.
        KafkaConfigError: the client refuses a property of the settings.
        BaselineError: the baseline cannot be read, or is of another definition.
    """
    kafka_config.check(settings.kafka)
    keep_heap_small(heaps=2)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    Decoder(settings.decode)  # a mapping file that cannot be used is told now, not after the model and the broker
    # The group is joined only with a model that works: a crash here must not shake the group (field case 43).
    pulse = Pulse(time.monotonic)
    evaluator = build_evaluator(settings, registry, turned=lambda: pulse.beat("inference"))
    thresholds = thresholds_in_force(settings, evaluator.definitions, evaluator.thresholds)
    versions = versions_in_force(evaluator)
    topics = settings.topics
    metrics = ScorerMetrics(
        registry,
        metrics=evaluator.definitions,
        outputs=(topics.scores, topics.flagged, topics.deadletter),
        versions=versions,
    )
    holder: list[Scorer] = []

    def ready() -> tuple[bool, str]:
        return holder[0].ready() if holder else (False, "starting")

    with HealthServer(settings.metrics.scorer.listen, registry, healthy=pulse.check, ready=ready) as server:
        log.info(
            "groundwatch %s scorer: metrics %s, embedder %s, rate %g, topics %s -> %s, metrics on http://%s/metrics",
            versions["groundwatch"], ", ".join(evaluator.definitions), versions["embedder"], settings.sampling.rate,
            ", ".join(topics.events), topics.scores, server.address,
        )  # fmt: skip
        for note in thresholds.notes:
            log.info("%s", note)
        await_topics(settings, pulse)
        scorer = build(settings, evaluator, thresholds, metrics, pulse, versions)
        holder.append(scorer)
        stopping.started(scorer.stop)
        _run_within_deadline(scorer, settings.scorer.shutdown_seconds)


def await_topics(settings: Settings, pulse: Pulse) -> None:
    """Wait for a broker, then insist on the topics: a missing or forbidden one is fatal at start.

    Raises:
        ScorerStopped: a topic is missing or forbidden, or the broker refuses the credentials.
    """
    refused: list[str] = []

    def on_error(error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            refused.append(error.str())

    admin = AdminClient(kafka_config.client(settings.kafka) | {"error_cb": on_error}, logger=_client_log())
    topics = settings.topics
    wanted = [*topics.events, topics.redrive, topics.scores, topics.flagged, topics.deadletter]
    while True:
        pulse.beat("poll")
        try:
            known = admin.list_topics(timeout=BROKER_SECONDS).topics
        except KafkaException as exception:
            admin.poll(0)
            if refused:
                raise ScorerStopped(f"Kafka refused this client: {refused[0]}; check the [kafka] settings") from None
            log.warning("waiting for Kafka at %s: %s", settings.kafka.bootstrap_servers, exception.args[0].str())
            time.sleep(1.0)
            continue
        faults = []
        for name in wanted:
            fault = known[name].error if name in known else "missing"
            if fault is not None:
                faults.append(f"{name}: {fault}")
        if faults:
            listed = "; ".join(faults)
            raise ScorerStopped(
                f"topics that cannot be used: {listed}; run `groundwatch topics create`, or grant this user access"
            )
        return


def build(
    settings: Settings,
    evaluator: Evaluator,
    thresholds: ThresholdTable,
    metrics: ScorerMetrics,
    pulse: Pulse,
    versions: Mapping[str, str],
) -> Scorer:
    """Wire a scorer from settings and what was built before it.

    Raises:
        MappingError: a mapping file, or the form that the settings name, cannot be used.
    """
    sampler = Sampler(settings.sampling)
    intake = Intake(Decoder(settings.decode), sampler, Segmenter(settings.segments), Redactor(settings.redaction))
    holder: list[Scorer] = []
    consumer = Consumer(
        kafka_config.consumer(settings.kafka, settings.scorer.group)
        | {
            "error_cb": lambda error: holder[0].failed(error) if holder else None,
            "on_commit": lambda error, offsets: holder[0].partitions.committed(error, offsets) if holder else None,
        },
        logger=_client_log(),
    )
    parts = Parts(
        consumer=consumer,
        outputs=Outputs(kafka_config.producer(settings.kafka), metrics.output_refused),
        evaluator=evaluator,
        sampler=sampler,
        intake=intake,
        metrics=metrics,
        pulse=pulse,
        handover=_handover(settings.judge, evaluator.remote),
        results=Results(settings, thresholds, evaluator.definitions, versions, time.time),
    )
    scorer = Scorer(parts, settings)
    holder.append(scorer)
    return scorer


def _handover(settings: Judge, remote: Remote | None) -> Handover | None:
    """The way to the judge's pool, not started; None without a remote judge."""
    if not isinstance(remote, RemoteJudge):
        return None
    pool = RemotePool(
        remote,
        concurrency=settings.concurrency,
        waiting=settings.waiting,
        timeout_seconds=settings.timeout_seconds,
        now=time.monotonic,
    )
    remote.watch(held=lambda: pool.held)
    return Handover(pool, remote.budget, frozenset(remote.definitions), remote.model)


def _run_within_deadline(scorer: Scorer, shutdown_seconds: float) -> None:
    """Run; once it is to stop, leave within the deadline even where a dead broker holds the client (field case 16)."""
    watchdog = leave_after(shutdown_seconds)
    try:
        scorer.run(stopping=watchdog.start)
    finally:
        scorer.close()
        watchdog.cancel()


def _client_log() -> logging.Logger:
    return logging.getLogger("librdkafka")
