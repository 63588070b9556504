"""Case files in a file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from consumer.case_file import encode_case
from consumer.case_filter import CaseFilter
from consumer.case_lines import CaseLines, CaseLinesError
from tests.case_files import case_file

CASES = [case_file(number, float(number)) for number in (1, 2)]
LINES = b"".join(encode_case(case) + b"\n" for case in CASES)


def test_a_compressed_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    for name, content in (("cases.jsonl", LINES), ("cases.jsonl.gz", gzip.compress(LINES))):
        (tmp_path / name).write_bytes(content)
        assert CaseLines(tmp_path / name).select(CaseFilter()) == CASES[::-1]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("events.jsonl", LINES + b'{"id": "q-1"}', "line 3: no case file, undecodable: it has no 'record'"),
        ("plain.gz", LINES, "Not a gzipped file"),
        ("cut.gz", gzip.compress(LINES)[:-20], "end-of-stream"),
        ("damaged.gz", gzip.compress(LINES)[:40] + b"\0" * 40, ""),
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
