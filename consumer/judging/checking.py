"""Is the configured judge fit? Cases with known verdicts, sent to it as the stream would send them."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

import orjson

from consumer.decode import DecodeError, Decoder
from consumer.redaction import Redactor
from metrics.evaluation import Remote, RemoteResult
from metrics.event import Chunk, Event
from metrics.judge import Label
from metrics.llm.names import FAITHFULNESS
from metrics.outcome import Reason, Scored

CASES = "check_cases.json"


class Expected(StrEnum):
    """What is right for an answer. `unsupported` is contradicted or not_found: whoever labels need not say which."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_FOUND = "not_found"
    UNSUPPORTED = "unsupported"
    NO_CLAIMS = "no_claims"


UNSUPPORTED = frozenset({Expected.CONTRADICTED, Expected.NOT_FOUND, Expected.UNSUPPORTED})


class CasesUnusable(Exception):
    """The labelled file cannot be used; one line that says where and why."""


@dataclass(frozen=True, slots=True)
class CheckCase:
    """An event with what is right for it; `kind` groups cases in the report."""

    event: Event
    kind: str
    expected: Expected


@dataclass(frozen=True, slots=True)
class Checked:
    """What the judge made of a case. `found` is an `Expected` value, or the reason why there is none; `exact`: it is
    what was expected; `sided`: it is at least on the right side of supported and not."""

    case: CheckCase
    found: str
    seconds: float
    calls: int
    prompt_tokens: int
    completion_tokens: int
    why: str

    @property
    def exact(self) -> bool:
        wanted = self.case.expected
        return self.found == wanted or (wanted is Expected.UNSUPPORTED and self.sided)

    @property
    def sided(self) -> bool:
        wanted = self.case.expected
        return self.found == wanted or (wanted in UNSUPPORTED and self.found in UNSUPPORTED)


def built_in_cases() -> list[CheckCase]:
    """English and Chinese: supported, number, negation, contradiction, not found, refusal, injection."""
    cases = orjson.loads(files("consumer.judging").joinpath(CASES).read_bytes())
    return [
        CheckCase(
            Event(c["name"], 0.0, c["question"], tuple(Chunk(t) for t in c["contexts"]), c["answer"]),
            c["kind"],
            Expected(c["expected"]),
        )
        for c in cases
    ]


def labelled_cases(file: Path, decoder: Decoder, redactor: Redactor) -> list[CheckCase]:
    """JSON lines: events in any accepted form, each with `expected` (one of the list) or `faithful` (true or false).

    Raises:
        CasesUnusable: the file, or a line of it, cannot be read, or there is no case.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise CasesUnusable(f"{file}: {error.strerror}") from None
    cases = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            cases.append(_labelled(line, number, file, decoder, redactor))
    if not cases:
        raise CasesUnusable(f"{file}: there is no case in it")
    return cases


def _labelled(line: bytes, number: int, file: Path, decoder: Decoder, redactor: Redactor) -> CheckCase:
    where = f"{file}, line {number}"
    try:
        event = redactor.redact(decoder.decode(line, fallback_id=f"line-{number}", broker_time=0.0).event)
        data = orjson.loads(line)
    except (DecodeError, orjson.JSONDecodeError) as error:
        raise CasesUnusable(f"{where}: {error}") from None
    expected, faithful = data.get("expected"), data.get("faithful")
    if expected is None and isinstance(faithful, bool):
        expected = Expected.SUPPORTED if faithful else Expected.UNSUPPORTED
    if expected not in list(Expected):
        names = ", ".join(Expected)
        raise CasesUnusable(f'{where}: needs "expected" (one of {names}) or "faithful" (true or false)')
    return CheckCase(event, "labelled", Expected(expected))


def check(cases: Sequence[CheckCase], judge: Remote, now: Callable[[], float] = time.monotonic) -> Iterator[Checked]:
    """Every case, one after the other, with all metrics that the judge scores. `now` is monotonic seconds."""
    wanted = frozenset(judge.definitions)
    for case in cases:
        begun = now()
        result = judge.judge(case.event, wanted)
        seconds = now() - begun
        cost = result.judged.cost if result.judged is not None else {}
        yield Checked(
            case,
            found_in(result),
            seconds,
            cost.get("judge_calls", 0),
            cost.get("prompt_tokens", 0),
            cost.get("completion_tokens", 0),
            _why(result),
        )


def found_in(result: RemoteResult) -> str:
    """One word for a whole answer: its worst verdict, `no_claims`, or the reason why there is no score."""
    outcome = result.outcomes[FAITHFULNESS]
    if not isinstance(outcome, Scored):
        return Expected.NO_CLAIMS if outcome.reason is Reason.NO_CLAIMS else outcome.reason.value
    labels = {verdict.label for verdict in result.judged.verdicts} if result.judged is not None else set()
    for label in (Label.CONTRADICTED, Label.NOT_FOUND):
        if label in labels:
            return label.value
    return Expected.SUPPORTED


def _why(result: RemoteResult) -> str:
    """The judge's reason for the worst verdict, or what it said that could not be read."""
    judged = result.judged
    if judged is None:
        return ""
    order = {Label.CONTRADICTED: 0, Label.NOT_FOUND: 1, Label.SUPPORTED: 2}
    worst = sorted(judged.verdicts, key=lambda verdict: order[verdict.label])
    return worst[0].reason if worst else (judged.replies[0] if judged.replies else "")


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks come to. Rates are in [0, 1]; seconds and tokens are of one answer; `balanced` is the mean of the
    rates at which supported and unsupported answers are told, None where one kind is missing."""

    cases: int
    exact: int
    sided: int
    balanced: float | None
    median_seconds: float
    slowest_seconds: float
    calls: float
    prompt_tokens: float
    completion_tokens: float
    by_kind: dict[str, tuple[int, int]]
    unscored: dict[str, int]


def report(checked: Sequence[Checked]) -> Report:
    """Sum up; an answer without a score counts as wrong.

    Raises:
        ValueError: nothing was checked.
    """
    if not checked:
        raise ValueError("nothing was checked")
    n = len(checked)
    right, all_ = Counter(c.case.kind for c in checked if c.exact), Counter(c.case.kind for c in checked)
    rates = []
    for side in (frozenset({Expected.SUPPORTED}), UNSUPPORTED):
        told = [c.sided for c in checked if c.case.expected in side]
        if told:
            rates.append(sum(told) / len(told))
    known = frozenset(Expected)
    return Report(
        cases=n,
        exact=sum(c.exact for c in checked),
        sided=sum(c.sided for c in checked),
        balanced=sum(rates) / 2 if len(rates) == 2 else None,
        median_seconds=statistics.median(c.seconds for c in checked),
        slowest_seconds=max(c.seconds for c in checked),
        calls=sum(c.calls for c in checked) / n,
        prompt_tokens=sum(c.prompt_tokens for c in checked) / n,
        completion_tokens=sum(c.completion_tokens for c in checked) / n,
        by_kind={kind: (right[kind], all_[kind]) for kind in all_},
        unscored=dict(Counter(c.found for c in checked if c.found not in known)),
    )
