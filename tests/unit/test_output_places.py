"""No command writes over what it reads, nor two things into one file."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from consumer.cli import group
from consumer.output_places import check_outputs


def test_distinct_places_pass(tmp_path: Path) -> None:
    check_outputs({"--out": tmp_path / "a", "--plot": tmp_path / "b", "--cases": None}, {"EVENTS": tmp_path / "c"})
    check_outputs({"--out": Path("-")}, {"EVENTS": Path("-")})


def test_a_link_and_another_spelling_are_the_same_file(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("{}\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(events)
    for out in (events, link, tmp_path / "x" / ".." / "events.jsonl"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(click.UsageError, match="would overwrite EVENTS"):
            check_outputs({"--out": out}, {"EVENTS": events})


@pytest.mark.parametrize(
    "arguments",
    [
        ["score-file", "in.jsonl", "--out", "s.jsonl", "--summary", "in.jsonl"],
        ["score-file", "in.jsonl", "--out", "s.jsonl", "--summary", "s.jsonl"],
        ["score-file", "in.jsonl", "--out", "s.jsonl", "--cases", "in.jsonl"],
        ["cases", "export", "--in", "in.jsonl", "--out", "in.jsonl"],
        ["demo", "--for", "60s", "--summary", "in.jsonl", "--cases", "in.jsonl"],
        ["calibrate", "in.jsonl", "--out", "in.jsonl"],
        ["correlate", "in.jsonl", "--out", "in.jsonl"],
    ],
)
def test_a_command_refuses_before_it_touches_anything(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "e"}\n')
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 2, done.output
    assert "name another" in done.output
    assert file.read_text() == '{"id": "e"}\n'
    assert sorted(tmp_path.iterdir()) == [file]
