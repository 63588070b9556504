"""The LLM judge that the settings ask for, wired: client, budget, cache, prompts. No request is made here."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import httpx
from prometheus_client import CollectorRegistry, Counter

from consumer.judge_settings import Judge
from consumer.judging.budget import Budget
from consumer.judging.chat_client import JudgeClient
from consumer.judging.circuit import Circuit
from consumer.judging.dialect import Dialect
from consumer.judging.judge_metrics import JudgeMetrics
from consumer.judging.remote_judge import RemoteJudge
from consumer.judging.verdict_store import MEMORY_CACHE, REDIS_CACHE, VerdictStore
from consumer.logs import without_credentials
from consumer.redis_values import RESULTS, RedisValues
from consumer.settings import Redis, Settings
from metrics.lexical.judge import LexicalJudge
from metrics.llm.chat import Chat
from metrics.llm.judging import LlmJudging, Options
from metrics.llm.names import METRICS
from metrics.llm.prompts import PromptError, load_book
from metrics.llm.verdict_cache import NoCache, VerdictCache
from metrics.metric import Embedder
from metrics.model_files import ModelError

log = logging.getLogger(__name__)

MEMORY_RESULTS = ("hit", "miss")


def build_remote(
    settings: Settings, embedder: Embedder, registry: CollectorRegistry, cache_requests: Counter
) -> RemoteJudge | None:
    """The judge of `judge.kind = "llm"`; None where none of the metrics is its.

    Raises:
        ModelError: its prompts or its key cannot be read.
    """
    judge = settings.judge
    wanted = tuple(name for name in settings.scoring.metrics if name in METRICS)
    if not wanted:
        return None
    try:
        book = load_book(judge.prompts_dir)
    except PromptError as error:
        raise ModelError(f"judge.prompts_dir: {error}") from None
    budget = Budget(judge, time.monotonic, time.time)
    metrics = JudgeMetrics(
        registry, judge.model, prompt_price=judge.prompt_price, completion_price=judge.completion_price
    )
    client = build_client(judge, metrics, budget.spent)
    cache = _cache(settings.redis, cache_requests) if judge.cache else NoCache()
    options = Options(
        metrics=wanted,
        splitting=judge.split,
        statements_per_call=judge.statements_per_call,
        cross_check=judge.cross_check,
        passage_tokens=judge.passage_tokens,
        questions=judge.questions,
    )
    rules = LexicalJudge()

    def judging(chat: Chat) -> LlmJudging:
        return LlmJudging(
            chat, embedder.embed, book, embedder_identity=embedder.identity, cache=cache, options=options, rules=rules
        )

    remote = RemoteJudge(client, judging, budget, metrics, timeout_seconds=judge.timeout_seconds)
    log.info("judge: %s at %s", remote.identity, without_credentials(judge.url))
    return remote


def build_client(judge: Judge, metrics: JudgeMetrics, spent: Callable[[int, int], None]) -> JudgeClient:
    """The endpoint of the settings.

    Raises:
        ModelError: the key's file cannot be read.
    """
    key = api_key(judge)
    http = httpx.Client(
        base_url=judge.url + "/",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        follow_redirects=False,
        limits=httpx.Limits(max_connections=judge.concurrency + 1, max_keepalive_connections=judge.concurrency + 1),
    )
    dialect = None if judge.structured == "auto" else Dialect(structured=judge.structured, told=True)
    return JudgeClient(
        http,
        judge.model,
        metrics=metrics,
        circuit=Circuit(time.monotonic),
        dialect=dialect,
        extra=judge.extra,
        spent=spent,
    )


def api_key(judge: Judge) -> str:
    """The key of the settings, "" where there is none.

    Raises:
        ModelError: its file cannot be read, or holds what no header can carry.
    """
    key = judge.api_key.get_secret_value()
    if judge.api_key_file is not None:
        try:
            key = judge.api_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"judge.api_key_file: {error}") from None
    if not (key.isascii() and key.isprintable()):
        raise ModelError("judge.api_key: it holds characters that no HTTP header can carry; is it the right file?")
    return key


def _cache(redis: Redis, requests: Counter) -> VerdictCache:
    memory = {result: requests.labels(MEMORY_CACHE, result) for result in MEMORY_RESULTS}
    remote = None
    if redis.cache_url:
        remote = RedisValues(
            redis.cache_url,
            kept="verdicts",
            budget_seconds=redis.lookup_budget_ms / 1000,
            ttl_seconds=redis.ttl_hours * 3600,
            count=partial(_count, {result: requests.labels(REDIS_CACHE, result) for result in RESULTS}),
        )
    return VerdictStore(entries=redis.lru_entries, remote=remote, count_memory=partial(_count, memory))


def _count(children: dict[str, Counter], result: str, number: int) -> None:
    children[result].inc(number)
