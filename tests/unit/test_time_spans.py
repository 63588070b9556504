"""A span of time that ends before it begins is an error that names both of its ends, before anything is read."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from consumer.cli import group

DAYS = ("2026-11-02", "2026-11-01")
SHOWN = ("2026-11-02 00:00:00 UTC", "2026-11-01 00:00:00 UTC")


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["export"], []])
def test_cases_between_two_times_that_are_the_wrong_way_round(command: list[str]) -> None:
    done = CliRunner().invoke(
        group, ["cases", *command, "--since", DAYS[0], "--until", DAYS[1], "--in", "no-such-file"]
    )
    assert done.exit_code == 2, done.output
    said = " ".join(done.stderr.split())
    assert f"--since {DAYS[0]} ({SHOWN[0]}) is not before --until {DAYS[1]} ({SHOWN[1]})" in said


def test_times_ago_are_told_as_what_they_are() -> None:
    done = CliRunner().invoke(group, ["cases", "--since", "2h", "--until", "4h"])
    assert done.exit_code == 2
    assert re.search(r"--since 2h \(\d{4}-.* UTC\) is not before --until 4h \(\d{4}-.* UTC\)", done.stderr)


def test_a_span_without_length_holds_nothing() -> None:
    assert CliRunner().invoke(group, ["cases", "--since", DAYS[0], "--until", DAYS[0]]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--before", DAYS[0], "--after", DAYS[1]], "--before: the span ends before it begins: from {0} to {1}"),
        (["--before", "/".join(DAYS), "--after", "1h"], "--before: the span ends before it begins: from {0} to {1}"),
        (["--before", "30d", "--after", "/".join(DAYS)], "--after: the span ends before it begins: from {0} to {1}"),
        (["--before", DAYS[1], "--after", "2026-11-01T12:00", "--for", "24h"], "it ends at {0}, the one after begins"),
    ],
)
def test_spans_of_a_contrast_that_are_the_wrong_way_round(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(group, ["contrast", *arguments])
    assert done.exit_code == 2, done.output
    assert said.format(*SHOWN) in " ".join(done.stderr.split())
