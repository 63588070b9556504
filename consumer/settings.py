"""Settings: one TOML file, every key overridable by `GROUNDWATCH__SECTION__KEY`, validated at start.

This module says which settings there are; `settings_source.py` says where their values come from.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from consumer.judge_settings import Judge
from consumer.settings_listeners import MetricsSection, Pages
from consumer.settings_rules import (
    RESERVED_CONSUMER,
    RESERVED_PRODUCER,
    check_bootstrap,
    check_metric_names,
    check_redis_url,
    check_segment,
    check_topics,
    refuse_reserved,
    segment_conditions,
)
from consumer.settings_section import PositiveSeconds, Rate, Section, Share
from consumer.settings_statistics import Changes, Drift, Labels
from consumer.settings_thresholds import Baseline, Thresholds
from metrics.label_names import same_names

Properties = dict[str, str | int | float | bool]
MAX_SEGMENTS = 50


class Kafka(Section):
    """One section drives both clients (librdkafka and aiokafka)."""

    bootstrap_servers: str = "localhost:9092"
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""
    sasl_username: str = ""
    sasl_password: SecretStr = SecretStr("")
    sasl_password_file: Path | None = None
    ssl_ca_file: Path | None = None
    ssl_certificate_file: Path | None = None
    ssl_key_file: Path | None = None
    consumer: Properties = Field(default_factory=dict)
    producer: Properties = Field(default_factory=dict)

    @field_validator("bootstrap_servers")
    @classmethod
    def hosts_and_ports(cls, value: str) -> str:
        check_bootstrap(value)
        return value

    @field_validator("consumer")
    @classmethod
    def offsets_move_only_when_we_say_so(cls, value: Properties) -> Properties:
        advice = "at-least-once rests on them; the group is named by scorer.group and monitor.group"
        refuse_reserved(value, RESERVED_CONSUMER, advice)
        return value

    @field_validator("producer")
    @classmethod
    def every_replica_acknowledges(cls, value: Properties) -> Properties:
        refuse_reserved(value, RESERVED_PRODUCER, "it always writes idempotently with acks = all")
        return value

    @model_validator(mode="after")
    def credentials_need_a_sasl_protocol(self) -> Kafka:
        if self.sasl_username and self.security_protocol != "SASL_SSL":
            raise ValueError(
                f"sasl_username is set, but security_protocol is {self.security_protocol}: "
                "the client would connect without the credentials; set security_protocol = 'SASL_SSL'"
            )
        if self.security_protocol == "SASL_SSL" and not (self.sasl_mechanism and self.sasl_username):
            raise ValueError("security_protocol SASL_SSL needs sasl_mechanism and sasl_username")
        return self


class Topics(Section):
    events: tuple[str, ...] = ("qa.events",)
    scores: str = "qa.scores"
    flagged: str = "qa.flagged"
    deadletter: str = "qa.deadletter"
    redrive: str = "qa.redrive"
    labels: str = "qa.labels"
    partitions: Annotated[int, Field(ge=1)] = 6
    replication: Annotated[int, Field(ge=1)] = 1
    scores_retention_hours: PositiveSeconds = 24 * 30
    deadletter_retention_hours: PositiveSeconds = 24 * 7
    events_retention_hours: PositiveSeconds = 24 * 7

    @field_validator("events", mode="before")
    @classmethod
    def one_name_is_a_list_of_one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def names_are_possible_and_differ(self) -> Topics:
        roles = ("scores", "flagged", "deadletter", "redrive", "labels")
        check_topics([*(("events", name) for name in self.events), *((role, getattr(self, role)) for role in roles)])
        return self


class Decode(Section):
    """Limits are refused, never cut off in silence."""

    forms_dir: Path | None = None
    """Mapping files of the user's own; they are tried before the shipped ones."""
    form: str = ""
    """The name of the one form on the topic; empty: recognised by its keys."""
    max_bytes: Annotated[int, Field(ge=1)] = 8_000_000
    max_chunks: Annotated[int, Field(ge=1)] = 1000
    max_characters: Annotated[int, Field(ge=1)] = 4_000_000
    max_depth: Annotated[int, Field(ge=4)] = 100
    gzip: bool = False


class AlwaysRule(Section):
    """Events that are always sampled: exactly one of the three conditions."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    negative_feedback: bool = False
    label: str = ""
    """`key=value`"""
    header: str = ""
    """`name` or `name=value`"""

    @model_validator(mode="after")
    def exactly_one_condition(self) -> AlwaysRule:
        if sum((self.negative_feedback, bool(self.label), bool(self.header))) != 1:
            raise ValueError("an always-rule needs exactly one of negative_feedback, label, header")
        if self.label and "=" not in self.label:
            raise ValueError(f"label must be 'key=value', not {self.label!r}")
        return self


class Sampling(Section):
    rate: Rate = 1.0
    salt: str = "groundwatch"
    id_header: str = ""
    """A record header that carries the event id; found without decoding."""
    key_is_id: bool = False
    """The record key is the event id. Refused at run time where keys plainly repeat (below 0.9 distinct)."""
    segment_rates: dict[str, Rate] = Field(default_factory=dict)
    """`"app=hr-helpdesk,lang=zh" = 0.5`; the most specific match wins."""
    always: tuple[AlwaysRule, ...] = ()

    @field_validator("segment_rates")
    @classmethod
    def readable_segments(cls, value: dict[str, float]) -> dict[str, float]:
        for key in value:
            segment_conditions(key)
        return value

    @field_validator("always")
    @classmethod
    def rule_names_differ(cls, value: tuple[AlwaysRule, ...]) -> tuple[AlwaysRule, ...]:
        names = [rule.name for rule in value]
        if len(set(names)) < len(names):
            raise ValueError("two always-rules have the same name; records could not tell them apart")
        return value


class Segments(Section):
    """The allow-list: label values outside it are `other`. `lang` is detected by script where it is not labelled."""

    allow: dict[str, tuple[str, ...]] = Field(default_factory=lambda: {"app": (), "lang": ("en", "zh")})
    contrast: tuple[str, ...] = ("model", "kb_version")
    """Label dimensions kept in the record, never labels of a series."""

    @model_validator(mode="after")
    def at_most_fifty_combinations(self) -> Segments:
        combinations = math.prod(len(values) + 1 for values in self.allow.values())
        if combinations > MAX_SEGMENTS:
            raise ValueError(f"{combinations} segment combinations (with 'other'); at most {MAX_SEGMENTS} are allowed")
        for one, other in same_names(self.allow):
            raise ValueError(f"allow: {one!r} and {other!r} would be one label of the series; rename one of them")
        return self


class RedactionPattern(Section):
    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,30}$")]
    pattern: str

    @field_validator("pattern")
    @classmethod
    def usable_pattern(cls, value: str) -> str:
        from consumer.redacting.own_patterns import compile_pattern  # only who has patterns pays for the import

        compile_pattern(value)
        return value


class Redaction(Section):
    enabled: bool = True
    kinds: tuple[Literal["EMAIL", "PHONE", "CARD", "ID"], ...] = ("EMAIL", "PHONE", "CARD", "ID")
    patterns: tuple[RedactionPattern, ...] = ()
    deadletter_payload: bool = True
    """False keeps headers only in the dead letter."""


class Embedding(Section):
    model: str = "multilingual-e5-small"
    """`multilingual-e5-small` or `all-MiniLM-L6-v2` (packaged), a sentence-transformers name or path, or `openai`."""
    revision: str = ""
    models_dir: Path | None = None
    """Where prepared models lie; default: `$XDG_CACHE_HOME/groundwatch/models`."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 32
    window_overlap: Annotated[int, Field(ge=0)] = 32
    """Tokens shared by neighbouring windows of a text that is longer than the model's window."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Threads of the model; 0: as many as there are cores."""
    endpoint: str = ""
    """Base URL of an OpenAI-compatible embeddings endpoint, with model = "openai"."""
    endpoint_model: str = ""
    endpoint_key: SecretStr = SecretStr("")
    endpoint_timeout_seconds: PositiveSeconds = 20.0
    endpoint_window_characters: Annotated[int, Field(ge=100)] = 4000
    """Longer texts are cut into windows: the endpoint does not say how many tokens its model takes."""


class Redis(Section):
    cache_url: str = ""
    """May evict. Empty: an in-process LRU only."""
    cases_url: str = ""
    """Must not evict."""
    lookup_budget_ms: PositiveSeconds = 50.0
    ttl_hours: PositiveSeconds = 72.0
    lru_entries: Annotated[int, Field(ge=0)] = 20_000

    @field_validator("cache_url", "cases_url")
    @classmethod
    def url_of_a_redis(cls, value: str) -> str:
        check_redis_url(value)
        return value


class Scoring(Section):
    metrics: tuple[str, ...] = (
        "faithfulness",
        "topic_similarity",
        "question_context_similarity",
        "question_answer_similarity",
    )
    """`faithfulness` is the judge's (`[judge]`), the others are the embedder's."""
    aggregation: Literal["best", "mean", "all"] = "best"
    sketch: bool = True

    @field_validator("metrics")
    @classmethod
    def metrics_there_are(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_metric_names(value)
        return value


class Cases(Section):
    """Case files of flagged and audited answers."""

    audit_share: Share = 0.01
    """Share of all scored events, chosen by hash, that get a case file whatever their score."""
    audit_per_hour: Annotated[int, Field(ge=0)] = 1000
    ttl_hours: PositiveSeconds = 24.0 * 14
    most: Annotated[int, Field(ge=1)] = 50_000
    """Case files kept in Redis at the most; the oldest go first."""


class Scorer(Section):
    group: str = "groundwatch-scorer"
    max_inflight: Annotated[int, Field(ge=1)] = 2000
    """Sampled events between poll and acknowledged output; above it partitions are paused."""
    max_delay_seconds: PositiveSeconds = 300.0
    """Older than this when its turn comes, a backlog is no longer worth every score: the scorer sheds until it has
    caught up. The default is the shortest window: older events no longer move its gauge."""
    batch_events: Annotated[int, Field(ge=1)] = 16
    batch_wait_ms: PositiveSeconds = 50.0
    commit_interval_seconds: PositiveSeconds = 1.0
    shutdown_seconds: PositiveSeconds = 20.0
    run: Annotated[str, Field(min_length=1)] = "live"
    """`run` of the score records; anything but `live` never reaches a gauge."""


class Monitor(Section):
    group: str = "groundwatch-monitor"
    windows: dict[str, PositiveSeconds] = Field(default_factory=lambda: {"5m": 300.0, "1h": 3600.0, "24h": 86400.0})
    dedup_seconds: PositiveSeconds = 3600.0
    future_seconds: PositiveSeconds = 60.0
    rebuild_deadline_seconds: PositiveSeconds = 120.0
    coverage_minimum: Share = 0.9


class Logging(Section):
    format: Literal["json", "console"] = "console"
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class Settings(Section):
    kafka: Kafka = Kafka()
    topics: Topics = Topics()
    decode: Decode = Decode()
    sampling: Sampling = Sampling()
    segments: Segments = Segments()
    redaction: Redaction = Redaction()
    embedding: Embedding = Embedding()
    redis: Redis = Redis()
    scoring: Scoring = Scoring()
    judge: Judge = Judge()
    thresholds: Thresholds = Thresholds()
    baseline: Baseline = Baseline()
    cases: Cases = Cases()
    scorer: Scorer = Scorer()
    monitor: Monitor = Monitor()
    drift: Drift = Drift()
    changes: Changes = Changes()
    labels: Labels = Labels()
    metrics: MetricsSection = MetricsSection()
    pages: Pages = Pages()
    logging: Logging = Logging()

    @model_validator(mode="after")
    def a_slow_judge_leaves_room(self) -> Settings:
        """Answers at the judge count as in flight: more of them than half the limit would pause the topic for good."""
        held, room = self.judge.concurrency + self.judge.waiting, self.scorer.max_inflight // 2
        if self.judge.kind == "llm" and held > room:
            raise ValueError(
                f"judge.concurrency + judge.waiting is {held}, more than half of scorer.max_inflight ({room}): a judge "
                "that hangs would hold up the topic; lower them, or raise scorer.max_inflight"
            )
        return self

    @model_validator(mode="after")
    def drift_windows_exist(self) -> Settings:
        unknown = [name for name in self.drift.windows if name not in self.monitor.windows]
        if unknown:
            there = ", ".join(self.monitor.windows)
            raise ValueError(f"drift.windows: {', '.join(unknown)} is not in monitor.windows (there are: {there})")
        return self

    @model_validator(mode="after")
    def segments_can_match(self) -> Settings:
        """What is set for a segment that no event can have would be ignored in silence."""
        for setting, keys, what in (
            ("sampling.segment_rates", self.sampling.segment_rates, "rate"),
            ("thresholds.segments", self.thresholds.segments, "threshold"),
        ):
            for key in keys:
                check_segment(f"{setting}: {key!r}", key, self.segments.allow, what)
        return self
