"""The Prometheus rules, run by promtool: every alert fires just beyond its threshold, and not just before it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consumer.settings import Settings
from deploy.prometheus.alert import Alert
from deploy.prometheus.generate import RULES, promtool_tests
from deploy.prometheus.recording import Recording
from deploy.prometheus.rules import build, rule_file
from deploy.prometheus.scenario import Scenario
from deploy.prometheus.score_scenarios import score_scenarios
from deploy.prometheus.table import TABLE, Table, read_table, span
from deploy.prometheus.worker_scenarios import worker_scenarios
from deploy.prometheus.written import as_yaml
from tests.prometheus_tools import ABSENT, tools

FOLDER = TABLE.parent
pytestmark = pytest.mark.timeout(900)
TABLE_OF_DEFAULTS = read_table(Settings())
RECORDINGS, ALERTS = build(TABLE_OF_DEFAULTS)
SCENARIOS = [*score_scenarios(TABLE_OF_DEFAULTS), *worker_scenarios(TABLE_OF_DEFAULTS)]


@pytest.fixture(scope="session")
def promtools(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    found = tools("promtool", tmp_path_factory.mktemp("prometheus"))
    if not found:
        pytest.skip(ABSENT)
    return found


def run(promtool: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([promtool, *arguments], cwd=cwd, capture_output=True, text=True, timeout=800)


def played(promtool: str, folder: Path, table: Table, rules: dict[str, Any], scenarios: Sequence[Scenario]) -> str:
    """Run the scenarios against a rule file; what promtool said where it failed, else nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(as_yaml(rules, ""), encoding="utf-8")
    said = ""
    for step in sorted({scenario.step for scenario in scenarios}):
        chosen = [scenario for scenario in scenarios if scenario.step == step]
        (folder / "tests.yaml").write_text(as_yaml(promtool_tests(chosen, ALERTS, "rules.yaml"), ""), encoding="utf-8")
        result = run(promtool, "test", "rules", "tests.yaml", cwd=folder)
        if result.returncode:
            said += result.stdout + result.stderr
    return said


def of(alert: Alert) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if scenario.alert == alert.name]


def test_every_alert_has_a_story_in_which_it_fires_and_near_misses() -> None:
    for alert in ALERTS:
        fires = [scenario for scenario in of(alert) if scenario.fires]
        quiet = [scenario for scenario in of(alert) if not scenario.fires]
        assert fires, alert.name
        assert quiet, alert.name
        assert any(scenario.exact for scenario in fires), f"`for` of {alert.name} is not checked"
    titles = [(scenario.alert, scenario.title) for scenario in SCENARIOS]
    assert len(set(titles)) == len(titles)


def test_rules_are_valid(promtools: list[str]) -> None:
    for promtool in promtools:
        said = run(promtool, "check", "rules", RULES, cwd=FOLDER)
        assert said.returncode == 0, said.stderr
        assert f"{len(RECORDINGS) + len(ALERTS)} rules found" in said.stdout


def test_every_alert_fires_when_it_must_and_only_then(promtools: list[str], tmp_path: Path) -> None:
    """Each alert with the recording rules and nothing else, which is quick; all together: the test below."""

    def one(alert: Alert) -> str:
        rules = rule_file(TABLE_OF_DEFAULTS, RECORDINGS, [alert])
        return played(promtools[0], tmp_path / alert.name, TABLE_OF_DEFAULTS, rules, of(alert))

    with ThreadPoolExecutor(2) as pool:
        assert [said for said in pool.map(one, ALERTS) if said] == []


@pytest.mark.full
def test_what_an_alert_says_is_complete(promtools: list[str], tmp_path: Path) -> None:
    """promtool shows the alerts that nobody expected, with every template filled in."""

    def one(alert: Alert) -> str:
        folder = tmp_path / alert.name
        folder.mkdir()
        rules = rule_file(TABLE_OF_DEFAULTS, RECORDINGS, [alert])
        (folder / "rules.yaml").write_text(as_yaml(rules, ""), encoding="utf-8")
        scenario = next(scenario for scenario in of(alert) if scenario.fires)
        tests = promtool_tests([scenario], ALERTS, "rules.yaml")
        del tests["tests"][0]["promql_expr_test"]
        asked = {"eval_time": span(scenario.at), "alertname": alert.full_name, "exp_alerts": []}
        tests["tests"][0]["alert_rule_test"] = [asked]
        (folder / "tests.yaml").write_text(as_yaml(tests, ""), encoding="utf-8")
        return run(promtools[0], "test", "rules", "tests.yaml", cwd=folder).stderr

    with ThreadPoolExecutor(2) as pool:
        said = dict(zip((alert.name for alert in ALERTS), pool.map(one, ALERTS), strict=True))
    for name, text in said.items():
        notes = text.partition("Annotations:")[2]
        for part in ("summary=", "description=", "dashboard=", "runbook_url="):
            assert part in notes, f"{name}: {text}"
        for bad in ("<no value>", "<error", "{{", "%!", "= NaN", "is NaN"):
            assert bad not in notes, f"{name}: {notes}"
    assert "n = 54" in said["FaithfulnessLow"]
    assert 'cases="http://localhost:9110/cases?segment=app%3Dshop%2Clang%3Den&flag=faithfulness_low&from=1h"' in (
        said["FaithfulnessLow"].replace("\\u0026", "&")
    )


@pytest.mark.full
def test_the_committed_test_files_pass_on_every_promtool(promtools: list[str]) -> None:
    files = sorted(path.name for path in FOLDER.glob("groundwatch.*.tests.yaml"))
    assert len(files) >= 3
    for promtool in promtools:
        said = run(promtool, "test", "rules", *files, cwd=FOLDER)
        assert said.returncode == 0, f"{promtool}: {said.stdout}{said.stderr}"


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


@pytest.mark.full
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_mutated_rule_is_found_out(promtools: list[str], tmp_path: Path, alert: Alert) -> None:
    """Threshold, guard, `for`, hold, severity or a label changed or removed: the stories of that alert must fail."""
    changed = list(mutants(alert))
    rules = [(told, rule_file(TABLE_OF_DEFAULTS, RECORDINGS, [mutant])) for told, mutant in changed]
    for label in ("severity", "service"):
        without = rule_file(TABLE_OF_DEFAULTS, RECORDINGS, [alert])
        del without["groups"][0]["rules"][-1]["labels"][label]
        rules.append((f"without the label {label}", without))

    def one(number: int) -> str:
        told, mutant = rules[number]
        folder = tmp_path / str(number)
        return "" if played(promtools[0], folder, TABLE_OF_DEFAULTS, mutant, of(alert)) else told

    with ThreadPoolExecutor(2) as pool:
        survived = [told for told in pool.map(one, range(len(rules))) if told]
    assert survived == []


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
    yield "a mean of means", [
        replace(r, expr=r.expr.replace("sum by (metric, definition", "avg by (metric, definition"))
        if r.name == "groundwatch:score:mean1h"
        else r
        for r in RECORDINGS
    ]  # fmt: skip


@pytest.mark.full
def test_a_mutated_recording_rule_is_found_out(promtools: list[str], tmp_path: Path) -> None:
    (alert,) = [alert for alert in ALERTS if alert.name == "FaithfulnessLow"]
    survived = [
        told
        for number, (told, recordings) in enumerate(recording_mutants())
        if not played(
            promtools[0],
            tmp_path / str(number),
            TABLE_OF_DEFAULTS,
            rule_file(TABLE_OF_DEFAULTS, recordings, [alert]),
            of(alert),
        )
    ]
    assert survived == []
