"""The Prometheus rules, run by promtool: every alert fires just beyond its threshold, and not just before it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.prometheus.generate import RULES, promtool_tests
from deploy.prometheus.table import TABLE, span
from tests.promtool_runs import ALERTS, RECORDINGS, SCENARIOS, Played, alone, of, run, said

FOLDER = TABLE.parent
_GOT = re.compile(r"alertname: (\w+)")


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
    """Each alert with the recording rules that it needs, which is quick; all together: the last test below."""
    assert said(promtools[0], tmp_path, [alone(alert) for alert in ALERTS]) == ""


def test_what_an_alert_says_is_complete(promtools: list[str], tmp_path: Path) -> None:
    """promtool shows the alerts that nobody expected, with every template filled in."""
    sets = []
    for alert in ALERTS:
        scenario = next(scenario for scenario in of(alert) if scenario.fires)
        tests = promtool_tests([scenario], ALERTS, "")
        del tests["tests"][0]["promql_expr_test"]
        asked = {"eval_time": span(scenario.at), "alertname": alert.full_name, "exp_alerts": []}
        tests["tests"][0]["alert_rule_test"] = [asked]
        sets.append(Played(alert.name, alone(alert).rules, [tests]))
    told = _GOT.split(said(promtools[0], tmp_path, sets))
    texts = dict(zip(told[1::2], told[2::2], strict=True))
    assert texts.keys() == {alert.full_name for alert in ALERTS}
    for name, text in texts.items():
        notes = text.partition("Annotations:")[2]
        for part in ("summary=", "description=", "dashboard=", "runbook_url="):
            assert part in notes, f"{name}: {text}"
        for bad in ("<no value>", "<error", "{{", "%!", "= NaN", "is NaN"):
            assert bad not in notes, f"{name}: {notes}"
    faithfulness = texts["GroundwatchFaithfulnessLow"].replace("\\u0026", "&")
    assert "n = 54" in faithfulness
    cases = "http://localhost:9110/cases?segment=app%3Dshop%2Clang%3Den&flag=faithfulness_low&from=1h"
    assert f'cases="{cases}"' in faithfulness


@pytest.mark.full
def test_the_committed_test_files_pass_on_every_promtool(promtools: list[str]) -> None:
    files = sorted(path.name for path in FOLDER.glob("groundwatch.*.tests.yaml"))
    assert len(files) >= 3
    for promtool in promtools:
        said = run(promtool, "test", "rules", *files, cwd=FOLDER)
        assert said.returncode == 0, f"{promtool}: {said.stdout}{said.stderr}"
