"""A rule with one thing wrong must be found out by the stories of its alert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.prometheus.alert import Alert
from deploy.prometheus.recording import Recording
from deploy.prometheus.rules import rule_file, rule_of
from tests.promtool_runs import (
    ALERTS,
    RECORDINGS,
    TABLE_OF_DEFAULTS,
    Played,
    by_step,
    failed,
    needed,
    of,
    said,
    variants,
)

pytestmark = pytest.mark.full
NUMBER = re.compile(r"(?<=[<>] )[0-9.]+|(?<=[<>]= )[0-9.]+|(?<=[+-] )[0-9.]+(?=\))|[0-9.]+(?= \* max)")
"""A threshold, a guard, a margin or a factor in an expression."""


def mutants(alert: Alert) -> Iterator[tuple[str, Alert]]:
    """The alert with one thing wrong."""
    for part in ("conditions", "guards"):
        parts: tuple[str, ...] = getattr(alert, part)
        for index, text in enumerate(parts):
            rest = parts[:index] + parts[index + 1 :]
            yield f"without {text}", replace(alert, **{part: rest})
            for told, other in moved(text):
                yield told, replace(alert, **{part: (*parts[:index], other, *parts[index + 1 :])})
    for told, other in moved(alert.lead):
        yield told, replace(alert, lead=other)
    if alert.for_seconds:
        for factor in (0.4, 2.0):
            yield f"`for` times {factor}", replace(alert, for_seconds=alert.for_seconds * factor)
    if alert.hold_seconds:
        yield "without holding on", replace(alert, hold_seconds=0.0)
    yield "another severity", replace(alert, severity="page" if alert.severity == "ticket" else "ticket")


def moved(text: str) -> Iterator[tuple[str, str]]:
    """Each number of the expression a quarter higher and lower; a bare `> 0` only keeps a division defined."""
    for match in NUMBER.finditer(text):
        number = float(match[0])
        for factor in (0.8, 1.25):
            if number:
                other = text[: match.start()] + f"{number * factor:g}" + text[match.end() :]
                yield f"{number:g} as {number * factor:g} in {text}", other


def changed_rules(alert: Alert) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong, and the rule with it. The first has nothing wrong."""
    yield "nothing", rule_of(alert, TABLE_OF_DEFAULTS)
    for told, mutant in mutants(alert):
        yield told, rule_of(mutant, TABLE_OF_DEFAULTS)
    for label in ("severity", "service"):
        rule = rule_of(alert, TABLE_OF_DEFAULTS)
        yield f"without the label {label}", rule | {"labels": {k: v for k, v in rule["labels"].items() if k != label}}


def survivors(promtool: str, folder: Path, alert: Alert) -> list[str]:
    """What was wrong with the rules that no story found out; `nothing` where a story is itself wrong."""
    changed = list(changed_rules(alert))
    played = variants(alert, [rule for _, rule in changed], needed(RECORDINGS, [alert], of(alert)))
    found = failed(said(promtool, folder, [played]))
    alive = {told for number, (told, _) in enumerate(changed) if f"{alert.full_name}{number}" not in found}
    return [f"{alert.name}: {told}" for told in sorted(alive ^ {"nothing"})]


def test_a_mutated_rule_is_found_out(promtools: list[str], tmp_path: Path) -> None:
    """Threshold, guard, `for`, hold, severity or a label changed or removed: the stories of that alert must fail."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda alert: survivors(promtools[0], tmp_path / alert.name, alert), ALERTS))
    assert [told for each in found for told in each] == []


def recording_mutants() -> Iterator[tuple[str, list[Recording]]]:
    """Recording rules with one thing wrong."""

    def with_rule(name: str, old: str, new: str) -> list[Recording]:
        (rule,) = [rule for rule in RECORDINGS if rule.name == name]
        assert old in rule.expr, name
        return [replace(r, expr=r.expr.replace(old, new)) if r.name == name else r for r in RECORDINGS]

    newest = " and on (metric, definition) groundwatch:definition:newest"
    yield "old definitions count too", with_rule("groundwatch:rolling_score_high:newest", newest, "")
    score = "groundwatch_rolling_score"
    yield "NaN is kept", with_rule("groundwatch:rolling_score:newest", f"{score} == {score} and", f"{score} and")
    yield (
        "no default threshold",
        with_rule("groundwatch:threshold:in_force", "0 * groundwatch_rolling_samples", "0 * groundwatch_nothing"),
    )
    yield (
        "the default wins",
        [
            replace(r, expr="\nor\n".join(reversed(r.expr.split("\nor\n")))) if "threshold" in r.name else r
            for r in RECORDINGS
        ],
    )
    mean = "groundwatch:score:mean1h"
    (summed,) = [rule.expr for rule in RECORDINGS if rule.name == mean]
    weighted, weight = re.findall(r"increase\(\w+\[\w+\]\)", summed)
    labels = summed.partition("(")[2].partition(")")[0]
    yield "a mean of means", with_rule(mean, summed, f"avg by ({labels}) ({weighted} / {weight})")


def test_a_mutated_recording_rule_is_found_out(promtools: list[str], tmp_path: Path) -> None:
    (alert,) = [alert for alert in ALERTS if alert.name == "FaithfulnessLow"]

    def one(numbered: tuple[int, tuple[str, list[Recording]]]) -> str:
        number, (told, recordings) = numbered
        rules = rule_file(TABLE_OF_DEFAULTS, needed(recordings, [alert], of(alert)), [alert])
        played = Played(alert.name, rules, by_step(of(alert), ALERTS))
        return "" if said(promtools[0], tmp_path / str(number), [played]) else told

    with ThreadPoolExecutor(2) as pool:
        assert [told for told in pool.map(one, enumerate(recording_mutants())) if told] == []
