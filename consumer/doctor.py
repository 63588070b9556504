"""`groundwatch doctor`: one line for each thing that must be right before events are scored, with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from consumer import kafka_config
from consumer.baselines import read_baseline
from consumer.broker_version import protocol_level
from consumer.doctor_finding import ANSWER_SECONDS, Check
from consumer.doctor_judge import check_judge
from consumer.embedders import needs_vectors
from consumer.logs import one_line, without_credentials
from consumer.settings import Kafka, Redis, Sampling, Segments, Settings
from consumer.settings_source import Loaded
from consumer.topics import TopicsError, TopicState, inspect_topics
from metrics.baseline import BaselineError
from metrics.model_files import Manifest, ModelError, damaged_files, read_manifest
from metrics.model_store import SOURCES, default_dir, hub_model, prepared

NEVER_EVICTS = "noeviction"


def examine(loaded: Loaded, environ: Mapping[str, str], timeout: float) -> Iterator[Check]:
    """Every check, in the order in which faults hide one another. `timeout` is in seconds, for each broker request.

    Nothing is changed, and nothing here raises: a fault is a check that failed.
    """
    settings = loaded.settings
    checks: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("settings", partial(check_settings, loaded)),
        ("segments", partial(check_segments, settings.segments)),
        ("sampling", partial(check_sampling, settings.sampling)),
        ("baseline", partial(check_baseline, settings.baseline.file)),
        ("environment", partial(check_environment, environ)),
        ("model", partial(check_model, settings, environ)),
        ("judge", partial(check_judge, settings)),
        ("redis", partial(check_redis, settings.redis)),
        ("client", partial(check_client, settings.kafka)),
        ("broker", partial(check_broker, settings, timeout)),
    )
    for subject, check in checks:
        try:
            yield from check()
        except Exception as error:
            yield Check(subject, "fail", one_line(f"the check itself failed: {error!r}"), "please report this")


def check_settings(loaded: Loaded) -> Iterator[Check]:
    settings = loaded.settings
    if settings.metrics.scorer.listen == settings.metrics.monitor.listen:
        yield Check(
            "settings",
            "warn",
            f"scorer and monitor both listen on {settings.metrics.scorer.listen}",
            "change metrics.scorer.listen or metrics.monitor.listen if both run on one machine",
        )
    origins = sorted({where for where in loaded.origin.values() if not where.startswith("GROUNDWATCH__")})
    files = f" from {', '.join(origins)}" if origins else ""
    yield Check("settings", "ok", f"valid; {len(loaded.origin)} not at their default{files}")


def check_segments(segments: Segments) -> Iterator[Check]:
    apps = segments.allow.get("app", ())
    if "app" in segments.allow and not apps:
        yield Check(
            "segments",
            "warn",
            "no app is allow-listed: every event counts under app=other",
            'name your apps: segments.allow.app = ["..."]',
        )
        return
    yield Check("segments", "ok", "; ".join(f"{name}: {', '.join(values)}" for name, values in segments.allow.items()))


def check_sampling(sampling: Sampling) -> Iterator[Check]:
    unit = (
        f"header {sampling.id_header}" if sampling.id_header else "record key" if sampling.key_is_id else "decoded id"
    )
    found = f"rate {sampling.rate:g} by {unit}"
    if sampling.rate < 1 and sampling.always:
        found += f"; always-rules ({', '.join(rule.name for rule in sampling.always)}) make it decode every event"
    elif sampling.rate < 1 and unit == "decoded id":
        found += "; every event is decoded to find its id (sampling.id_header or key_is_id would spare that)"
    yield Check("sampling", "ok", found)


def check_baseline(file: Path | None) -> Iterator[Check]:
    if file is None:
        yield Check("baseline", "ok", "none: similarities are flagged by thresholds of yours only")
        return
    try:
        baseline = read_baseline(file)
    except BaselineError as error:
        advice = "check baseline.file, or make it: groundwatch calibrate"
        yield Check("baseline", "fail", one_line(str(error).removeprefix("baseline ")), advice)
        return
    count = len(baseline.thresholds)
    yield Check("baseline", "ok", f"{file} reads; {count} {'threshold' if count == 1 else 'thresholds'}")


def check_environment(environ: Mapping[str, str]) -> Iterator[Check]:
    # Each process is one exporter by design; half-obeyed multiprocess mode corrupts its files (field case 54).
    if "PROMETHEUS_MULTIPROC_DIR" in environ or "prometheus_multiproc_dir" in environ:
        yield Check(
            "environment",
            "fail",
            "PROMETHEUS_MULTIPROC_DIR is set",
            "unset it: scorer and monitor are one process each and serve their own /metrics",
        )
    else:
        yield Check("environment", "ok", "no PROMETHEUS_MULTIPROC_DIR")


def check_model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    embedding = settings.embedding
    if not needs_vectors(settings):
        yield Check("model", "ok", "none is loaded: no metric of scoring.metrics needs vectors")
        return
    if embedding.model == "openai":
        yield _endpoint(embedding.endpoint, embedding.endpoint_key.get_secret_value())
        return
    if Path(embedding.model).expanduser().is_dir():
        yield Check("model", "ok", f"{embedding.model}: a folder of yours; groundwatch models verify tries it")
        return
    folder = embedding.models_dir or default_dir(dict(environ))
    if embedding.model in SOURCES:
        yield _packaged_model(folder, embedding.model, embedding.revision)
    else:
        yield _hub_model(folder, embedding.model, embedding.revision)


def _packaged_model(store: Path, name: str, revision: str) -> Check:
    named = [(path, manifest) for path, manifest in prepared(store) if path.parent.name == name]
    sound = [path for path, manifest in named if isinstance(manifest, Manifest) and _is(manifest, revision)]
    if sound:
        return _unchanged(sound[-1])
    broken = "".join(f": {manifest}" for _, manifest in named if isinstance(manifest, ModelError))
    return Check("model", "fail", one_line(f"{name} is not prepared in {store}{broken}"), "groundwatch models prepare")


def _hub_model(store: Path, name: str, revision: str) -> Check:
    try:
        return _unchanged(hub_model(store, name, revision))
    except ModelError as error:
        found, _, advice = str(error).partition("; ")
        return Check("model", "fail", one_line(found), one_line(advice))


def _is(manifest: Manifest, revision: str) -> bool:
    return manifest.revision.startswith(revision)


def _unchanged(folder: Path) -> Check:
    """Checksums of a prepared model. Whether it still says the same about known texts is for `models verify`."""
    manifest = read_manifest(folder)
    damaged = damaged_files(folder, manifest)
    if damaged:
        advice = f"delete {folder}, then: groundwatch models prepare"
        return Check("model", "fail", f"damaged in {folder}: {', '.join(damaged)}", advice)
    return Check("model", "ok", f"{manifest.name} {manifest.revision[:12]} in {folder}, checksums right")


def _endpoint(endpoint: str, key: str) -> Check:
    shown = without_credentials(endpoint)
    if not endpoint:
        return Check(
            "model", "fail", "embedding.model is openai, but embedding.endpoint is empty", "set embedding.endpoint"
        )
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        status = httpx.get(f"{endpoint.rstrip('/')}/models", headers=headers, timeout=ANSWER_SECONDS).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check("model", "fail", one_line(f"{shown} does not answer: {error}"), "check embedding.endpoint")
    if status in (401, 403):
        return Check("model", "fail", f"{shown} answers {status}", "check GROUNDWATCH__EMBEDDING__ENDPOINT_KEY")
    if status >= 500:
        return Check("model", "warn", f"{shown} answers {status}", "look at the endpoint; events go unscored meanwhile")
    return Check("model", "ok", f"{shown} answers")


def check_redis(settings: Redis) -> Iterator[Check]:
    if settings.cache_url:
        yield _cache(settings.cache_url)
    else:
        yield Check(
            "cache",
            "warn",
            "no redis.cache_url: each scorer keeps its own in-process cache, lost at a restart",
            "set redis.cache_url to a Redis that may evict",
        )
    if not settings.cases_url:
        yield Check("cases", "ok", "no redis.cases_url: case files stay in Kafka only")
    elif settings.cases_url == settings.cache_url:
        yield Check(
            "cases",
            "fail",
            "redis.cases_url is redis.cache_url: the cache may evict, case files must not go",
            "use another Redis for redis.cases_url",
        )
    else:
        yield _cases(settings.cases_url)


def _cache(url: str) -> Check:
    memory = _memory_of(url, "cache")
    if isinstance(memory, Check):
        return memory
    policy, limit = memory.get("maxmemory_policy"), int(memory.get("maxmemory", 0))
    if policy is None:
        return Check(
            "cache",
            "warn",
            f"{without_credentials(url)} answers, but does not tell its eviction policy",
            "see that it may evict",
        )
    if policy == NEVER_EVICTS:
        return Check(
            "cache",
            "warn",
            f"{without_credentials(url)} never evicts (noeviction): once full it refuses writes",
            "set maxmemory and maxmemory-policy allkeys-lru",
        )
    if not limit:
        return Check(
            "cache",
            "warn",
            f"{without_credentials(url)} has no maxmemory: it grows until the machine is full",
            "set maxmemory",
        )
    return Check("cache", "ok", f"{without_credentials(url)} answers, evicts by {policy} above {limit / 2**20:.0f} MB")


def _cases(url: str) -> Check:
    memory = _memory_of(url, "cases")
    if isinstance(memory, Check):
        return memory
    policy = memory.get("maxmemory_policy")
    if policy is None:
        return Check(
            "cases",
            "warn",
            f"{without_credentials(url)} answers, but does not tell its eviction policy",
            "see that it never evicts",
        )
    if policy != NEVER_EVICTS:
        return Check(
            "cases",
            "fail",
            f"{without_credentials(url)} may evict ({policy}): case files would vanish unseen",
            "set maxmemory-policy noeviction",
        )
    return Check("cases", "ok", f"{without_credentials(url)} answers and never evicts")


def _memory_of(url: str, subject: str) -> dict[str, Any] | Check:
    """`INFO memory`, which managed servers allow where they refuse CONFIG; or the check that failed."""
    try:
        client = redis.Redis.from_url(
            url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0)
        )
        try:
            client.ping()
            memory: dict[str, Any] = client.info("memory")
        finally:
            client.close()
    except redis.AuthenticationError:
        return Check(subject, "fail", f"{without_credentials(url)} refuses the password", f"check redis.{subject}_url")
    except (redis.RedisError, ValueError, OSError) as error:
        found = one_line(f"{without_credentials(url)} does not answer: {error}")
        return Check(subject, "fail", found, f"start it, or check redis.{subject}_url")
    return memory


def check_client(kafka: Kafka) -> Iterator[Check]:
    try:
        kafka_config.check(kafka)
    except kafka_config.KafkaConfigError as error:
        yield Check("client", "fail", one_line(str(error)), "correct [kafka.consumer] or [kafka.producer]")
    else:
        yield Check("client", "ok", "the Kafka client takes every property")


def check_broker(settings: Settings, timeout: float) -> Iterator[Check]:
    try:
        states = inspect_topics(settings, timeout)
    except TopicsError as error:
        found, _, advice = str(error).partition("; ")
        yield Check("broker", "fail", found, advice)
        yield Check("topics", "fail", "not looked at, since the broker does not answer")
        return
    release = protocol_level(settings.kafka, timeout)
    level = f"speaks the protocol of Kafka {release}" if release else "does not tell its version"
    yield Check("broker", "ok", f"{settings.kafka.bootstrap_servers} answers, {level}")
    for state in states:
        yield from _topic(state)


def _topic(state: TopicState) -> Iterator[Check]:
    subject = f"topic {state.wanted.name}"
    for finding in state.findings:
        if finding.level != "note":
            found, _, advice = finding.text.partition("; ")
            yield Check(subject, finding.level, found, advice)
    if all(finding.level == "note" for finding in state.findings):
        count = "1 partition" if state.partitions == 1 else f"{state.partitions} partitions"
        notes = "".join(f"; {finding.text.partition('; ')[0]}" for finding in state.findings)
        yield Check(subject, "ok", f"{count}, {state.config.get('cleanup.policy', '?')}{notes}")
