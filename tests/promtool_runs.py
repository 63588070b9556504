"""Stories of the alerts, run by promtool: many alerts, or many variants of one alert, in a single process."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.settings import Settings
from deploy.prometheus.alert import Alert
from deploy.prometheus.budget_scenarios import budget_scenarios
from deploy.prometheus.generate import promtool_tests
from deploy.prometheus.merging_scenarios import merging_scenarios
from deploy.prometheus.recording import Recording
from deploy.prometheus.rules import build, rule_file
from deploy.prometheus.scenario import Scenario
from deploy.prometheus.score_scenarios import score_scenarios
from deploy.prometheus.table import read_table
from deploy.prometheus.worker_scenarios import worker_scenarios
from deploy.prometheus.written import as_yaml

TABLE_OF_DEFAULTS = read_table(Settings())
RECORDINGS, ALERTS = build(TABLE_OF_DEFAULTS)
SCENARIOS = [
    *score_scenarios(TABLE_OF_DEFAULTS),
    *budget_scenarios(TABLE_OF_DEFAULTS),
    *worker_scenarios(TABLE_OF_DEFAULTS),
    *merging_scenarios(TABLE_OF_DEFAULTS),
]
_RECORDED = re.compile(r"groundwatch:[a-z_]+:[a-z_0-9]+")
_FAILED = re.compile(r'^ +expr: "[^\n]*?alertname=\\"(\w+)\\"', re.M)


def of(alert: Alert) -> list[Scenario]:
    """The stories of that alert."""
    return [scenario for scenario in SCENARIOS if scenario.alert == alert.name]


def needed(recordings: Sequence[Recording], alerts: Iterable[Alert], scenarios: Iterable[Scenario]) -> list[Recording]:
    """The recording rules that the alerts and the checks of the stories rest on, directly or through others."""
    by_name = {rule.name: rule for rule in recordings}
    texts = [text for alert in alerts for text in (alert.expr(), alert.description)]
    texts += [check.expr for story in scenarios for check in story.checks]
    texts += [rule.expr for rule in recordings if rule.name == "groundwatch:threshold:in_force"]
    found: set[str] = set()
    while texts:
        new = {name for name in _RECORDED.findall(texts.pop()) if name in by_name} - found
        found |= new
        texts += [by_name[name].expr for name in new]
    return [rule for rule in recordings if rule.name in found]


def run(promtool: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Memory is there, and the time of the tests is not.
    environment = os.environ | {"GOGC": "400"}
    return subprocess.run([promtool, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=280)


@dataclass(frozen=True)
class Played:
    """One set of rules, and the stories that are played against it. `tests` may be given where those that the alerts
    make for themselves are not what is asked."""

    name: str
    rules: dict[str, Any]
    tests: Sequence[dict[str, Any]]

    def written(self, folder: Path) -> list[str]:
        """Names of the test files, which are written into `folder` with their rule file."""
        rules = f"{self.name}.rules.yaml"
        (folder / rules).write_text(as_yaml(self.rules, ""), encoding="utf-8")
        names = []
        for number, tests in enumerate(self.tests):
            names.append(f"{self.name}.{number}.tests.yaml")
            (folder / names[-1]).write_text(as_yaml(tests | {"rule_files": [rules]}, ""), encoding="utf-8")
        return names


def by_step(scenarios: Sequence[Scenario], alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """Test files for the stories: one for each length of a step."""
    steps = sorted({scenario.step for scenario in scenarios})
    return [promtool_tests([s for s in scenarios if s.step == step], alerts, "") for step in steps]


def alone(alert: Alert) -> Played:
    """The alert with the recording rules that it needs, and all its stories."""
    stories = of(alert)
    rules = rule_file(TABLE_OF_DEFAULTS, needed(RECORDINGS, [alert], stories), [alert])
    return Played(alert.name, rules, by_step(stories, ALERTS))


def said(promtool: str, folder: Path, sets: Sequence[Played]) -> str:
    """What promtool said where a story went another way; else nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [name for played in sets for name in played.written(folder)]
    result = run(promtool, "test", "rules", *files, cwd=folder)
    return result.stdout + result.stderr if result.returncode else ""


def variants(alert: Alert, changed: Sequence[dict[str, Any]], recordings: Sequence[Recording]) -> Played:
    """Many variants of one alert (each as the rule that Prometheus reads) side by side, under names of their own:
    `GroundwatchX0`, `GroundwatchX1`, ... Each is asked for what the alert itself must give."""
    stories = of(alert)
    rules = rule_file(TABLE_OF_DEFAULTS, recordings, [])
    (group,) = rules["groups"]
    tests = by_step(stories, ALERTS)
    for number, rule in enumerate(changed):
        group["rules"].append(_renamed(rule, alert, number))
    for file in tests:
        for test in file["tests"]:
            test["promql_expr_test"] = [
                _renamed(asked, alert, number) for asked in test["promql_expr_test"] for number in range(len(changed))
            ]
    return Played(alert.name, rules, tests)


def _renamed(value: Any, alert: Alert, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(part, alert, number) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, alert, number) for part in value]
    if value == alert.full_name:
        return f"{value}{number}"
    if isinstance(value, str):
        return value.replace(f'alertname="{alert.full_name}"', f'alertname="{alert.full_name}{number}"')
    return value


def failed(text: str) -> set[str]:
    """Names of the alerts of which promtool said that a story went another way."""
    return set(_FAILED.findall(text))
