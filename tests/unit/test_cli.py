from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from consumer.cli import COMMANDS, group


def test_help_lists_the_commands_that_are_there_and_no_others() -> None:
    said = CliRunner().invoke(group, ["--help"])
    assert said.exit_code == 0
    for name in group.list_commands(click.Context(group)):
        assert f"\n  {name} " in said.output
        assert COMMANDS[name] in " ".join(said.output.split())


@pytest.mark.parametrize("name", group.list_commands(click.Context(group)))
def test_every_command_explains_itself(name: str) -> None:
    said = CliRunner().invoke(group, [name, "--help"])
    assert said.exit_code == 0, said.output
    assert "Usage: " in said.output


@pytest.mark.parametrize("name", ["no-such-command", "__init__", "../settings", "settings.py"])
def test_an_unknown_command_is_one_clear_message(name: str) -> None:
    said = CliRunner().invoke(group, [name])
    assert said.exit_code == 2
    assert f"No such command '{name}'" in said.output


def test_version() -> None:
    said = CliRunner().invoke(group, ["--version"])
    assert said.exit_code == 0
    assert "groundwatch" in said.output


def test_a_settings_file_that_is_not_there_is_one_clear_message(tmp_path: Path) -> None:
    said = CliRunner().invoke(group, ["--settings", str(tmp_path / "none.toml"), "settings"])
    assert said.exit_code == 2
    assert "no such file; name the settings file with --settings" in said.output


def test_settings_shows_values_and_where_they_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gw.toml"
    file.write_text('[kafka]\nbootstrap_servers = "broker:9092"\n')
    monkeypatch.setenv("GROUNDWATCH__KAFKA__SASL_PASSWORD", "kafka-secret")
    said = CliRunner().invoke(group, ["--settings", str(file), "settings"])
    lines = {line.split()[0]: line for line in said.output.splitlines()}
    assert lines["kafka.bootstrap_servers"].endswith(f'= "broker:9092"    # {file}')
    assert lines["kafka.sasl_password"].endswith("= ***    # GROUNDWATCH__KAFKA__SASL_PASSWORD")
    assert "kafka-secret" not in said.output
