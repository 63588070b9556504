"""How many cores, how much memory and how much money a load needs: plain arithmetic over measured costs.

The costs are those of docs/performance.md, on one core of the machine named there; another machine differs, so the one
that matters most (tokens a second of the embedding model) can be given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

TOKENS_A_WORD = 1.4
"""Of the multilingual tokeniser, English prose; Chinese has about one token a character."""
VECTOR_BYTES = 1700
"""One cached vector of 384 float32 numbers, with its key."""
CASE_BYTES = 5000
"""One case file in Redis, compressed, with its index."""
RECORD_BYTES = 1200
"""One score record on its topic."""
SCORER_MB, SCORER_MOST_MB = 450, 900
MONITOR_MB, MONITOR_MOST_MB = 120, 150
MONITOR_SECONDS = 60e-6
"""Of one core, for one score record and a scrape a second."""
SAMPLING_SECONDS = 6e-6
"""To read an event and decide on it by an id in its key or a header."""
DECODING_SECONDS = 80e-6
"""More, where the id must be decoded: 3 kB, decoded and redacted."""
LEXICAL_SECONDS = 1.3e-3
"""A statement, five passages of 150 words."""
HEADROOM = 0.7
"""A core that is planned to be busier than this has nothing left for a burst."""
ALERT_SAMPLES = 50
"""Effective samples that a score alert asks for (deploy/prometheus/alerts.toml)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in, and what is to be done with it. Shares and rates in [0, 1]; words and passages are means.

    `id_is_seen`: the event id is in the key or a header, so that most events need no decoding. `recurring`: share of
    the passages that are in the cache already. `judge_tokens`: of one answer, prompt and completion; 0 is the lexical
    judge. `price`: of a million tokens.
    """

    events_per_second: float
    rate: float
    passages: float = 5.0
    words: float = 150.0
    answer_words: float = 40.0
    question_words: float = 15.0
    statements: float = 4.0
    recurring: float = 0.9
    flagged: float = 0.05
    segments: int = 1
    id_is_seen: bool = True
    judge_tokens: float = 0.0
    judge_seconds: float = 0.0
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """`tokens_per_second`: of the embedding model on one core (`groundwatch models verify`)."""

    cores: float
    tokens_per_second: float = 1200.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What the load needs. Cores are busy cores, without headroom; memory in MB, money a day."""

    scored_per_second: float
    reading_cores: float
    embedding_cores: float
    judging_cores: float
    monitor_cores: float
    scorers: int
    scorer_mb: int
    monitor_mb: int
    cache_mb_a_day: float
    cases_mb: float
    scores_gb_a_month: float
    judge_requests_at_once: float
    judge_tokens_a_day: float
    judge_money_a_day: float
    minutes_to_alert: float
    warnings: tuple[str, ...]

    @property
    def scorer_cores(self) -> float:
        return self.reading_cores + self.embedding_cores + self.judging_cores


def plan(load: Load, machine: Machine) -> Plan:
    """The formula of docs/production.md.

    embedding = scored/s x (question + answer + new passages, in tokens) / (tokens/s of a core)
    """
    scored = load.events_per_second * load.rate
    tokens = TOKENS_A_WORD * (
        load.question_words + load.answer_words + load.passages * load.words * (1.0 - load.recurring)
    )
    reading = load.events_per_second * SAMPLING_SECONDS
    reading += (scored if load.id_is_seen else load.events_per_second) * DECODING_SECONDS
    embedding = scored * tokens / machine.tokens_per_second
    judging = 0.0 if load.judge_tokens else scored * load.statements * LEXICAL_SECONDS
    cores = reading + embedding + judging
    day = 86_400.0 * scored
    needed = Plan(
        scored_per_second=scored,
        reading_cores=reading,
        embedding_cores=embedding,
        judging_cores=judging,
        monitor_cores=scored * MONITOR_SECONDS,
        scorers=max(1, math.ceil(cores / (machine.cores * HEADROOM))),
        scorer_mb=SCORER_MOST_MB,
        monitor_mb=MONITOR_MOST_MB,
        cache_mb_a_day=day * load.passages * (1.0 - load.recurring) * VECTOR_BYTES / 1e6,
        cases_mb=day * (load.flagged + 0.01) * CASE_BYTES / 1e6,
        scores_gb_a_month=day * 30 * RECORD_BYTES / 1e9,
        judge_requests_at_once=scored * load.judge_seconds if load.judge_tokens else 0.0,
        judge_tokens_a_day=day * load.judge_tokens,
        judge_money_a_day=day * load.judge_tokens * load.price / 1e6,
        minutes_to_alert=ALERT_SAMPLES * load.segments / scored / 60,
        warnings=(),
    )
    return replace(needed, warnings=tuple(_warnings(load, machine, needed)))


def _warnings(load: Load, machine: Machine, needed: Plan) -> Iterator[str]:
    need, have = needed.scorer_cores, machine.cores
    if need > have:
        possible = load.rate * have * HEADROOM / need
        yield (
            f"the work exceeds the cores: {need:.1f} are needed, {have:g} are there; the scorers would shed. "
            f"Lower the rate to {possible:.2g}, or run {needed.scorers} scorers with {have:g} cores each"
        )
    elif need > have * HEADROOM:
        yield f"{need:.1f} of {have:g} cores would be busy: a burst has to wait, or is shed"
    if needed.minutes_to_alert > 60:
        yield (
            f"an alert on a score needs {ALERT_SAMPLES} samples of a segment within its window of 1 h, and they take "
            f"{needed.minutes_to_alert:.0f} min: raise the rate, or use fewer segments"
        )
    if load.judge_tokens and needed.judge_requests_at_once > 50:
        yield f"the judge must answer {needed.judge_requests_at_once:.0f} requests at once: can it?"
