"""The evaluator that the settings ask for: model, cache, metrics; ready for use when it is returned."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter

from consumer.cache import MEMORY_RESULTS, CachedEmbedder, Memory
from consumer.judged_metrics import JUDGED, beyond, scored, wants_verdicts
from consumer.judges import NoJudge, build_lexical
from consumer.local_models import models_dir, prepare_torch
from consumer.redis_values import RESULTS
from consumer.redis_vectors import RedisVectors
from consumer.settings import Embedding, Redis, Scoring, Settings
from metrics.embedding import BATCH_TOKENS, KINDS, Count, LocalEmbedder
from metrics.endpoint import connect
from metrics.evaluation import Evaluator, VerdictMetric
from metrics.expected_faithfulness import ExpectedFaithfulness
from metrics.faithful_probability import FaithfulProbability
from metrics.metric import Embedder, Metric, Text, Vector
from metrics.model_files import ModelError, read_manifest
from metrics.model_store import SOURCES, hub_model, ready_model
from metrics.outcome import Reason, Unscored
from metrics.ranges import EXPECTED_FAITHFULNESS, FAITHFUL_PROBABILITY
from metrics.similarity import build_metrics

if TYPE_CHECKING:
    from metrics.lexical.judge import LexicalJudge
    from metrics.verifier.judge import LocalJudge

log = logging.getLogger(__name__)

ENDPOINT = "openai"
WARM_UP_SECONDS = 120.0
MEMORY_CACHE, REDIS_CACHE = "embedding_memory", "embedding_redis"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in use. `precision` is part of what a cached vector is known by; `note` says it all in one line."""

    embedder: Embedder
    precision: str
    revision: str
    note: str


def build_evaluator(
    settings: Settings, registry: CollectorRegistry | None, turned: Callable[[], None] | None = None
) -> Evaluator:
    """Prepare and load the model, warm it up, put the cache in front of it. Slow: seconds, and more on first use. Where
    no chosen metric needs vectors no model is loaded. `turned` is called after every batch that the model has done.

    Must be called in the process that evaluates: a fork would not carry the model's threads.

    Raises:
        ModelError: the model cannot be had or does not work; what to do is in the message.
        ValueError: an unknown metric, or a Redis URL that is none.
    """
    _checked_metrics(settings)  # a wrong name must not cost the loading of a model
    registry = registry or CollectorRegistry()
    texts = Counter(
        "groundwatch_embedded_texts_total",
        "Texts given to the model: whole, split over windows, blank; vectors recomputed or given up as not finite.",
        ["kind"],
        registry=registry,
    )
    requests = cache_counter(registry)
    if not needs_vectors(settings):
        log.info("embedder: none is loaded, as no chosen metric needs vectors")
        return _told(evaluator_over(settings, NoEmbedder(), registry, requests, turned=turned))
    loaded = load_embedder(settings.embedding, _counting({kind: texts.labels(kind) for kind in KINDS}))
    warm_up(loaded.embedder)
    if turned is not None and isinstance(loaded.embedder, LocalEmbedder):
        loaded = replace(loaded, embedder=replace(loaded.embedder, turned=turned))
    log.info("embedder: %s", loaded.note)
    memory_counts = _counting({result: requests.labels(MEMORY_CACHE, result) for result in MEMORY_RESULTS})
    redis_counts = _counting({result: requests.labels(REDIS_CACHE, result) for result in RESULTS})
    cached = CachedEmbedder(
        loaded.embedder,
        precision=loaded.precision,
        memory=Memory(settings.redis.lru_entries),
        remote=_remote(settings.redis, redis_counts),
        count_memory=memory_counts,
    )
    return _told(evaluator_over(settings, cached, registry, requests, model=loaded.embedder, turned=turned))


def needs_vectors(settings: Settings) -> bool:
    """The similarities are cosines; an LLM judge chooses passages by one. The other judges work without."""
    return settings.judge.kind == "llm" or bool(vector_metrics(settings.scoring))


class NoEmbedder:
    """Stands where no metric needs vectors, so that no model is loaded for nothing."""

    identity = "none"
    dimension = 0

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        return [Unscored(Reason.NOT_CONFIGURED)] * len(texts)


def _told(evaluator: Evaluator) -> Evaluator:
    if evaluator.judge is not None:
        log.info("judge: %s", evaluator.judge.identity)
    return evaluator


def evaluator_over(
    settings: Settings,
    embedder: Embedder,
    registry: CollectorRegistry,
    cache_requests: Counter,
    *,
    model: Embedder | None = None,
    turned: Callable[[], None] | None = None,
) -> Evaluator:
    """The metrics and the judge of the settings over an embedder that is there; `cache_requests` counts look-ups.
    `model`: the model behind a cached embedder, which the local verifier may share; `turned`: called by it as it goes.

    Raises:
        ModelError: the judge cannot be used.
        ValueError: an unknown metric, or one that this judge does not score.
    """
    metrics = _checked_metrics(settings)
    sketches = settings.scoring.sketch
    if settings.judge.kind == "llm":
        # Late: whoever has no such judge does not pay for its prompts.
        from consumer.judging.building import build_remote

        remote = build_remote(settings, embedder, registry, cache_requests)
        return Evaluator(metrics, embedder, sketches=sketches, remote=remote)
    if not wants_verdicts(settings.scoring.metrics):
        return Evaluator(metrics, embedder, sketches=sketches)
    if settings.judge.kind == "none":
        return Evaluator(metrics, embedder, sketches=sketches, judge=NoJudge())
    judge: LexicalJudge | LocalJudge
    judge = build_lexical() if settings.judge.kind == "lexical" else _local_judge(settings, embedder, model, turned)
    known: dict[str, VerdictMetric] = {
        FAITHFUL_PROBABILITY: FaithfulProbability(judge),
        EXPECTED_FAITHFULNESS: ExpectedFaithfulness(),
    }
    wanted = scored(settings.scoring.metrics, settings.judge)
    of_verdicts = [metric for name, metric in known.items() if name in wanted]
    return Evaluator(metrics, embedder, sketches=sketches, judge=judge, of_verdicts=of_verdicts)


def _local_judge(
    settings: Settings, embedder: Embedder, model: Embedder | None, turned: Callable[[], None] | None
) -> LocalJudge:
    prepare_torch(settings.embedding.threads)
    # Late: whoever has another judge does not pay for torch.
    from consumer.local_judges import build_local

    return build_local(settings.judge, settings.embedding, embedder, model, turned or (lambda: None))


def cache_counter(registry: CollectorRegistry) -> Counter:
    """Counts look-ups and writes of every cache."""
    return Counter(
        "groundwatch_cache_requests_total", "Cache look-ups and writes, by key.", ["cache", "result"], registry=registry
    )


def _checked_metrics(settings: Settings) -> tuple[Metric, ...]:
    metrics = vector_metrics(settings.scoring)
    fault = beyond(settings.scoring.metrics, settings.judge)
    if fault:
        raise ValueError(fault)
    return metrics


def vector_metrics(settings: Scoring) -> tuple[Metric, ...]:
    """The named metrics that are made from vectors, without those that a judge makes.

    Raises:
        ValueError: an unknown or repeated name.
    """
    names = list(settings.metrics)
    for judged in JUDGED:
        if judged in names:
            names.remove(judged)
    try:
        return build_metrics(names, settings.aggregation)
    except ValueError as error:
        raise ValueError(f"{error}; and {', '.join(JUDGED)}, of the judge") from None


def load_embedder(settings: Embedding, count: Count) -> Loaded:
    """The model that `embedding.model` names. No model hub is asked.

    Raises:
        ModelError: it cannot be had.
    """
    if settings.model == ENDPOINT:
        return _endpoint(settings, count)
    prepare_torch(settings.threads)
    return _packaged(settings, count) if settings.model in SOURCES else _foreign(settings, count)


def _packaged(settings: Embedding, count: Count) -> Loaded:
    from metrics.embedding_precision import best_precision
    from metrics.encoder import load_encoder
    from metrics.tokens import read_tokens

    folder = ready_model(models_dir(settings), settings.model, settings.revision)
    manifest = read_manifest(folder)
    tokens = read_tokens(folder)
    if settings.precision == "auto":
        precision, why = best_precision(folder, tokens)
    else:
        precision, why = settings.precision, "by settings"
    network = load_encoder(folder, precision)
    embedder = LocalEmbedder(
        model=manifest.name,
        revision=manifest.revision[:12],
        dimension=network.network.hidden,
        tokens=tokens,
        network=network,
        exact=lambda: load_encoder(folder, "fp32"),
        overlap=settings.window_overlap,
        batch_tokens=_batch_tokens(settings),
        count=count,
    )
    return Loaded(embedder, precision, manifest.revision, f"{embedder.identity}, {precision} ({why})")


def _foreign(settings: Embedding, count: Count) -> Loaded:
    from metrics.foreign_model import content_revision, foreign_embedder

    path = Path(settings.model).expanduser()
    if path.is_dir():
        folder, revision = path, content_revision(path)
        if not revision.startswith(settings.revision):
            raise ModelError(f"{path} has revision {revision[:12]}, but embedding.revision is {settings.revision}")
    else:
        folder = hub_model(models_dir(settings), settings.model, settings.revision)
        revision = read_manifest(folder).revision
    if settings.precision not in ("auto", "fp32"):
        raise ModelError(f"embedding.precision {settings.precision} is for packaged models ({', '.join(SOURCES)})")
    embedder = foreign_embedder(
        folder,
        path.name if path.is_dir() else settings.model,
        revision=revision[:12],
        overlap=settings.window_overlap,
        batch_tokens=_batch_tokens(settings),
        count=count,
    )
    return Loaded(embedder, "fp32", revision, f"{embedder.identity}, fp32 (sentence-transformers)")


def _endpoint(settings: Embedding, count: Count) -> Loaded:
    embedder = connect(
        settings.endpoint,
        settings.endpoint_model,
        settings.endpoint_key.get_secret_value(),
        revision=settings.revision,
        timeout_seconds=settings.endpoint_timeout_seconds,
        window_characters=settings.endpoint_window_characters,
        batch_size=settings.batch_size,
        count=count,
    )
    return Loaded(embedder, "endpoint", settings.revision, embedder.identity)


def _batch_tokens(settings: Embedding) -> int:
    """`batch_size` counts texts of 64 tokens: longer ones make smaller batches."""
    return settings.batch_size * (BATCH_TOKENS // 32)


def warm_up(embedder: Embedder, seconds: float = WARM_UP_SECONDS) -> None:
    """One vector, within `seconds`: a model that hangs must not do so after the group was joined.

    Raises:
        ModelError: no vector in time.
    """
    results: list[object] = []

    def embed() -> None:
        try:
            results.extend(embedder.embed([Text("passage", "Is anybody there?")]))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=embed, name="warm-up", daemon=True)
    started = time.monotonic()
    thread.start()
    thread.join(seconds)
    if not results:
        raise ModelError(f"the model gave no vector within {time.monotonic() - started:.0f} s; see groundwatch doctor")
    if isinstance(results[0], Exception | Unscored):
        raise ModelError(f"the model gives no vector: {results[0]!r}; run: groundwatch models verify")


def _remote(settings: Redis, count: Callable[[str, int], None]) -> RedisVectors | None:
    if not settings.cache_url:
        log.info("redis.cache_url is not set: embeddings are kept in this process only (%d)", settings.lru_entries)
        return None
    remote = RedisVectors(
        settings.cache_url,
        budget_seconds=settings.lookup_budget_ms / 1000,
        ttl_seconds=settings.ttl_hours * 3600,
        count=count,
    )
    policy = remote.eviction_policy()
    if policy is None:
        log.warning("the embedding cache in Redis does not answer; embeddings are computed until it does")
    elif policy == "noeviction":
        log.warning(
            "redis.cache_url has maxmemory-policy noeviction: when it is full it stores nothing; use allkeys-lru"
        )
    return remote


def _counting(children: dict[str, Counter]) -> Callable[[str, int], None]:
    """A `Count` over series that exist from the start, at 0."""
    return lambda kind, number: children[kind].inc(number)
