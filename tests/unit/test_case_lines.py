"""Case files in a file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.case_file import encode_case
from consumer.case_filter import CaseFilter
from consumer.case_lines import CaseLines, CaseLinesError
from consumer.cli import group
from tests.case_files import case_file

CASES = [case_file(number, float(number)) for number in (1, 2)]
LINES = b"".join(encode_case(case) + b"\n" for case in CASES)


def test_a_compressed_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    for name, content in (("cases.jsonl", LINES), ("cases.jsonl.gz", gzip.compress(LINES, mtime=0))):
        (tmp_path / name).write_bytes(content)
        assert CaseLines(tmp_path / name).select(CaseFilter()) == CASES[::-1]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("events.jsonl", b'\n{"id": "q-1"}\n{}', "(score-file --cases writes them); line 2: no case file, undecodable"),
        ("plain.gz", LINES, "Not a gzipped file"),
        ("cut.gz", gzip.compress(LINES, mtime=0)[:-20], "end-of-stream"),
        ("damaged.gz", gzip.compress(LINES, mtime=0)[:40] + b"\0" * 40, ""),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(CaseLinesError) as raised:
        CaseLines(file).select(CaseFilter())
    assert said in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


DAMAGED = b"\n".join([encode_case(CASES[0]), b'{"id": "q-1"}', encode_case(CASES[1])[:50], encode_case(CASES[1]), b""])
SAID = ["line 2: no case file, undecodable: it has no 'record'", "line 3: no case file, undecodable: unexpected"]


def test_a_damaged_line_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(DAMAGED)
    lines = CaseLines(tmp_path / "cases.jsonl")
    for _ in range(2):
        assert lines.select(CaseFilter()) == CASES[::-1]
        assert [told[: len(said)] for told, said in zip(lines.told(), SAID, strict=True)] == SAID
    assert lines.find("evt-2") == [CASES[1]]


def test_of_many_damaged_lines_the_first_are_told(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(LINES + b"{}\n" * 500)
    lines = CaseLines(tmp_path / "cases.jsonl")
    lines.select(CaseFilter())
    told = lines.told()
    assert len(told) == 11
    assert told[0].startswith("line 3: no case file")
    assert told[-1] == "and 490 more lines that hold no case file"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["list"], ["evt-1", "evt-2"]),
        (["list", "--json"], ["evt-1", "evt-2"]),
        (["show", "evt-2"], ["CASE evt-2"]),
        (["show", "evt-2", "--json"], ["evt-2"]),
        (["show", "evt-9"], []),
        (["export"], ["evt-1", "evt-2"]),
    ],
)
def test_every_command_reads_the_other_lines_and_says_which_it_could_not(
    arguments: list[str], shown: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(DAMAGED)
    done = CliRunner().invoke(group, ["cases", *arguments, "--in", str(file)])
    assert done.exit_code == 1
    for name in shown:
        assert name in done.stdout
    for said in SAID:
        assert said in done.stderr
