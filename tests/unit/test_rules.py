"""The table of alerts and what is made from it: fresh, complete, documented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumer.settings import Settings
from deploy.prometheus.generate import RULES, files, main
from deploy.prometheus.rules import build
from deploy.prometheus.score_alerts import multiplier
from deploy.prometheus.table import TABLE, TableError, read_table, seconds_of, span

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
DEFAULTS = read_table(Settings())


def alerting() -> list[Mapping[str, Any]]:
    written = yaml.safe_load((TABLE.parent / RULES).read_text(encoding="utf-8"))
    return [rule for group in written["groups"] for rule in group["rules"] if "alert" in rule]


def test_the_committed_files_are_what_the_table_makes() -> None:
    for name, text in files(DEFAULTS).items():
        assert (TABLE.parent / name).read_text(encoding="utf-8") == text, "python -m deploy.prometheus.generate"
    made = {path.name for path in TABLE.parent.glob("groundwatch.*.yaml")}
    assert made == set(files(DEFAULTS))


def test_every_alert_has_a_runbook_and_no_runbook_is_left_over() -> None:
    named = {rule["alert"] for rule in alerting()}
    assert {path.stem for path in RUNBOOKS.glob("Groundwatch*.md")} == named
    for name in named:
        page = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {name}\n")
        for part in ("## What it means", "## Look at first", "## What to do"):
            assert part in page, f"{name}: {part}"


def test_every_alert_says_what_to_do_and_names_no_value_in_a_label() -> None:  # field case 63
    for rule in alerting():
        assert set(rule["labels"]) == {"service", "severity"}
        assert not any("$" in value for value in rule["labels"].values())
        assert "topk" not in rule["expr"]
        notes = rule["annotations"]
        assert {"summary", "description", "dashboard", "runbook_url"} <= set(notes)
        # The value is in the description, but where it can only be 0 or 1.
        yes_or_no = {f"Groundwatch{name}" for name in ("TargetsGone", "CaseStoreDown", "PagesDown", "NoInput")}
        if rule["alert"] not in yes_or_no:
            assert "$value" in notes["description"] + notes["summary"], rule["alert"]


def test_alerts_on_scores_have_a_guard() -> None:  # invariant 10
    _, alerts = build(DEFAULTS)
    watching = [
        alert for alert in alerts if re.search("rolling_|answers|groundwatch_drift|unscored|changes", alert.lead)
    ]
    assert len(watching) >= 14
    for alert in watching:
        assert alert.name == "NotANumber" or any(">=" in guard for guard in alert.guards), alert.name


def test_alerts_named_in_the_docs_exist() -> None:
    named = {rule["alert"] for rule in alerting()}
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    for page in pages:
        for name in re.findall(r"\bGroundwatch[A-Z][A-Za-z]+\b", page.read_text(encoding="utf-8")):
            assert name in named, f"{page.name}: {name}"


def test_settings_and_alerts_cannot_disagree() -> None:
    settings = Settings.model_validate(
        {
            "monitor": {"coverage_minimum": 0.77},
            "scorer": {"max_delay_seconds": 123},
            "thresholds": {"default": {"faithfulness": 0.66}},
            "segments": {"allow": {"team": ["a"]}},
        }
    )
    text = files(read_table(settings))[RULES]
    assert 'rolling_coverage_ratio:newest{window="1h"} < 0.77' in text
    assert "> 123" in text
    assert 'groundwatch_rolling_samples{metric="faithfulness"} + 0.66' in text
    assert "by (team)" in text
    assert "app" not in re.findall(r"by \(([^)]*)\)", text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('window = "1h"', 'window = "2h"', "monitor.windows has no '2h'"),
        ("settings:monitor.coverage_minimum", "settings:monitor.coverage_minimal", "no setting"),
        ("samples = 50", 'samples = "many"', "expected a number"),
        ('severity = "page"', 'severity = "panic"', "expected page or ticket"),
        ('for = "5m"', 'for = "soon"', "no span of time"),
        ("margin = 0.05", "margin = 0.05\nmargins = 1", "margins means nothing there"),
        ("[alerts.TopicDrift]", "[alerts.TopicDrifts]", "no [alerts.TopicDrift]"),
        ("target = 0.93", "target = 93", "expected a share"),
        ("[links]", "[link]", "'links' is missing"),
        ("limit = 0.3", "limit = nan", "alerts.RefusalsHigh.limit is nan"),
        ("limit = 0.3", "limit = -1", "at least 0"),
        ("samples = 50", "samples = 0", "at least 1"),
        ('"groundwatch-monitor"', '"it\'s a job"', "without quotes"),
        ('"docs/runbooks"', '"https://wiki/{{ b }}"', "links.runbooks"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "alerts.toml"
    changed.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(TableError) as refused:
        files(read_table(Settings(), changed))
    assert message in str(refused.value)
    said = CliRunner().invoke(main, ["--table", str(changed), "--out", str(tmp_path)])
    assert said.exit_code == 1
    assert "Traceback" not in said.output


def test_thresholds_may_come_from_a_baseline_alone(tmp_path: Path) -> None:
    settings = Settings.model_validate({"thresholds": {"default": {}}})
    made = files(read_table(settings))
    assert "max by (metric, app, lang) (groundwatch_threshold)" in made[RULES]
    assert "GroundwatchFaithfulnessLow" in made[RULES]


def test_links_and_time_scale_are_given_on_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "rules"
    options = ["--grafana", "https://g.example.org/", "--runbooks", "https://wiki.example.org/rb", "--scale", "60"]
    assert CliRunner().invoke(main, ["--out", str(out), *options]).exit_code == 0
    assert [path.name for path in out.iterdir()] == [RULES]
    text = (out / RULES).read_text(encoding="utf-8")
    assert "https://g.example.org/d/groundwatch-" in text
    assert "https://wiki.example.org/rb/GroundwatchNoInput.md" in text
    assert "increase(groundwatch_events_in_total[30s])" in text
    assert "interval: 500ms" in text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0.5, 0.9999), st.floats(1.0, 14.4))
def test_the_budget_can_burn_as_fast_as_an_alert_asks(target: float, canonical: float) -> None:
    """A 90 % target can never burn 14.4 times as fast as planned; what is asked for must lie within reach."""
    times = multiplier(canonical, target)
    most = 1 / (1 - target)
    assert 1 <= times <= 1.0000001 * (most if target <= 0.999 else canonical * most)
    if target <= 0.999:
        assert times <= canonical * 1.0000001


def test_multipliers_keep_their_order() -> None:
    for target in (0.5, 0.9, 0.93, 0.99, 0.999):
        times = [multiplier(canonical, target) for canonical in (14.4, 6, 1)]
        assert times == sorted(times, reverse=True)
        assert times[-1] == 1


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 10_000_000))
def test_spans_are_read_as_they_are_written(seconds: int) -> None:
    assert seconds_of(span(float(seconds))) == seconds
