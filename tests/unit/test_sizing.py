"""The arithmetic of `groundwatch plan`: by hand, and in the limits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumer.cli import group
from consumer.sizing import HEADROOM, Load, Machine, plan

WORKED = Load(events_per_second=1000, rate=0.02)
"""The example of docs/production.md."""


def test_the_worked_example_by_hand() -> None:
    needed = plan(WORKED, Machine(cores=4, tokens_per_second=1200))
    assert needed.scored_per_second == pytest.approx(20)
    tokens = 1.4 * (15 + 40 + 5 * 150 * 0.1)
    assert needed.embedding_cores == pytest.approx(20 * tokens / 1200)
    assert needed.reading_cores == pytest.approx(1000 * 6e-6 + 20 * 80e-6)
    assert needed.judging_cores == pytest.approx(20 * 4 * 1.3e-3)
    assert needed.scores_gb_a_month == pytest.approx(20 * 86400 * 30 * 1200 / 1e9)
    (warning,) = needed.warnings
    assert "3.1 of 4 cores" in warning


def test_an_llm_judge_costs_money_and_no_cores() -> None:
    needed = plan(replace(WORKED, judge_tokens=3000, judge_seconds=4, price=0.5), Machine(cores=8))
    assert needed.judging_cores == 0
    assert needed.judge_tokens_a_day == pytest.approx(20 * 86400 * 3000)
    assert needed.judge_money_a_day == pytest.approx(20 * 86400 * 3000 * 0.5 / 1e6)
    assert needed.judge_requests_at_once == pytest.approx(80)
    assert any("80 requests at once" in warning for warning in needed.warnings)


def test_what_exceeds_the_cores_is_told_with_a_rate_that_fits() -> None:
    machine = Machine(cores=2)
    needed = plan(replace(WORKED, rate=0.1), machine)
    (warning,) = [w for w in needed.warnings if "exceeds" in w]
    fitting = float(warning.split("Lower the rate to ")[1].split(",")[0])
    assert plan(replace(WORKED, rate=fitting), machine).scorer_cores < machine.cores
    assert needed.scorers * machine.cores * HEADROOM >= needed.scorer_cores


def test_a_rate_that_can_raise_no_alert_is_told() -> None:
    needed = plan(Load(events_per_second=0.1, rate=0.05, segments=4), Machine(cores=2))
    assert any("raise the rate" in warning for warning in needed.warnings)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(st.floats(0.1, 1e5), st.floats(0.001, 1), st.floats(1, 64), st.floats(0, 1))
def test_more_work_never_needs_less(events: float, rate: float, cores: float, recurring: float) -> None:
    load, machine = Load(events, rate, recurring=recurring), Machine(cores)
    needed, more = plan(load, machine), plan(replace(load, events_per_second=2 * events), machine)
    assert more.scorer_cores >= needed.scorer_cores > 0
    assert more.scorers >= needed.scorers >= 1
    seldom = plan(replace(load, recurring=recurring / 2), machine)
    assert seldom.embedding_cores >= needed.embedding_cores
    unseen = plan(replace(load, id_is_seen=False), machine)
    assert unseen.reading_cores >= needed.reading_cores


def test_the_command_prints_it_and_warns() -> None:
    command = ["plan", "--events-per-second", "1000", "--rate", "0.02", "--cores", "2", "--segments", "1"]
    said = CliRunner().invoke(group, command)
    assert said.exit_code == 3
    assert "scored      20 of 1000 events/s" in said.output
    assert "the work exceeds the cores" in said.output
    fits = CliRunner().invoke(group, [*command[:-3], "16", "--segments", "1"])
    assert fits.exit_code == 0
    assert "warning" not in fits.output


def test_the_command_as_json() -> None:
    said = CliRunner().invoke(group, ["plan", "--events-per-second", "10", "--rate", "1", "--cores", "16", "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["scored_per_second"] == 10


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rate", "2"],
        ["--rate", "0"],
        ["--rate", "nan"],
        ["--cores", "0"],
        ["--cores", "inf"],
        ["--events-per-second", "-1"],
        ["--events-per-second", "nan"],
        ["--events-per-second", "1e300"],
        [],
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(wrong: list[str]) -> None:
    given_load = [] if "--events-per-second" in wrong or not wrong else ["--events-per-second", "5"]
    said = CliRunner().invoke(group, ["plan", *given_load, *wrong])
    assert said.exit_code == 2
    assert "Traceback" not in said.output
