"""`groundwatch decode` as a person runs it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from consumer.cli import group
from tests.unit.decode_payloads import FLAT, P1, A, Q


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(group, ["decode", *arguments], input=given)


def test_fields_are_shown(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps({"payload": FLAT | {"id": "e7"}, "schema": None}, indent=1))
    result = run("one.json")
    assert result.exit_code == 0
    for shown in ("form native", "kafka_connect", "e7", Q, A, P1, "the broker's time is taken"):
        assert shown in result.output


def test_lines_and_gzip(tmp_path: Path) -> None:
    lines = "".join(json.dumps(FLAT | {"id": str(n)}) + "\n" for n in range(3)) + "\nnot json\n"
    (tmp_path / "many.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    result = run("many.jsonl.gz")
    assert result.exit_code == 1
    assert "record 4: refused, not_json" in result.output
    assert "3 of 4 records read, 1 refused" in result.output


def test_standard_input_as_json() -> None:
    result = run("-", "--json", given=json.dumps(FLAT))
    shown = json.loads(result.output)
    assert result.exit_code == 0
    assert shown["event"]["answer"] == A
    assert shown["not_in_record"] == ["id", "timestamp"]


def test_a_list_of_records() -> None:
    assert run("-", given=json.dumps([FLAT, FLAT, FLAT])).output.count("form native") == 3


def test_a_list_is_said_to_be_no_record_of_a_topic(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps([FLAT, FLAT]))
    assert "batch_of_records" in run("list.json").output
    shown = run("list.json", "--json")
    assert "batch_of_records" in shown.stderr
    assert len([json.loads(line) for line in shown.stdout.splitlines()]) == 2
    for one in (FLAT, [FLAT]):
        (tmp_path / "one.json").write_text(json.dumps(one))
        assert "batch_of_records" not in run("one.json").output
    for lines in (f"[{json.dumps(FLAT)},\n{json.dumps(FLAT)}", '[{"question": "保修"},\n{}]'.encode("gbk")):
        assert "note:" not in run("-", given=lines).output
    assert "batch_of_records" not in run("-", given=f"{json.dumps(FLAT)}\n{json.dumps(FLAT)}\n").output


def test_gzip_is_said_to_be_refused_on_a_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.json.gz").write_bytes(gzip.compress(json.dumps(FLAT).encode()))
    told = run("one.json.gz")
    assert told.exit_code == 0
    assert "unsupported_format" in told.output
    assert "decode.gzip" in told.output
    assert "unsupported_format" in run("one.json.gz", "--json").stderr
    monkeypatch.setenv("GROUNDWATCH__DECODE__GZIP", "true")
    assert "unsupported_format" not in run("one.json.gz").output
    (tmp_path / "list.json.gz").write_bytes(gzip.compress(json.dumps([FLAT, FLAT]).encode()))
    assert "batch_of_records" in run("list.json.gz").output


def test_the_unrecognised_record_lists_its_keys() -> None:
    result = run("-", given='{"foo": 1, "bar": 2}')
    assert result.exit_code == 1
    assert "foo, bar" in result.output
    assert "decode.forms_dir" in result.output
    assert "Traceback" not in result.output


def test_a_broken_document_is_one_record() -> None:
    result = run("-", given='{\n "question": "q",\n "answer": \n}')
    assert result.exit_code == 1
    assert result.output.count("refused") == 1


def test_faults_of_the_call_are_told() -> None:
    assert "No such file" in run("absent.json").output
    assert run("absent.json").exit_code == 2
    assert "holds no record" in run("-", given="").output
    assert "there is no form" in run("-", "--form", "nothing", given="{}").output


def test_control_characters_do_not_reach_the_terminal() -> None:
    result = run("-", given=json.dumps(FLAT | {"answer": "x\x1b[31m\u202ey\nz"}))
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
