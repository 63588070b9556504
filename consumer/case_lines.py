"""Case files in a file, one a line, as `score-file --cases` writes them (`.gz` too)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from consumer.case_file import CaseFile, decode_case
from consumer.case_filter import CaseFilter, named, newest_matching
from consumer.label import Label
from consumer.record import RecordRejected
from consumer.terminal_text import shortened

SHOWN_BAD_LINES = 10


class CaseLinesError(Exception):
    """The file cannot be read, or none of its lines holds a case file; one line that says which."""


class CaseLines:
    """The case files of one file, read anew by every method. Lines that hold none are passed over, see `told`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bad: list[str] = []
        self._bad_lines = 0

    def select(self, wanted: CaseFilter, limit: int | None = None) -> list[CaseFile]:
        """The cases that match, newest event first."""
        return newest_matching(self._cases(), wanted, limit)

    def find(self, reference: str) -> list[CaseFile]:
        """The cases that `reference` names."""
        return named(self._cases(), reference)

    def labels(self, cases: Sequence[CaseFile]) -> dict[str, Label]:
        """None: a file holds cases as they were written."""
        return {}

    def told(self) -> list[str]:
        """Which lines hold no case file, and why, as of the last reading; the first few of them, and how many more."""
        more = self._bad_lines - len(self._bad)
        return [*self._bad, *([f"and {more} more lines that hold no case file"] if more else [])]

    def _cases(self) -> Iterator[CaseFile]:
        self._bad, self._bad_lines = [], 0
        good = 0
        try:
            opened = gzip.open if self._path.suffix == ".gz" else open
            with opened(self._path, "rb") as file:
                for number, line in enumerate(file, 1):
                    case = self._decoded(number, line) if line.strip() else None
                    if case is not None:
                        good += 1
                        yield case
        except (OSError, EOFError, zlib.error) as error:
            raise CaseLinesError(f"{self._path}: {getattr(error, 'strerror', None) or error}") from None
        if self._bad and not good:
            raise CaseLinesError(
                f"{self._path}: no line is a case file (score-file --cases writes them); {self._bad[0]}"
            )

    def _decoded(self, number: int, line: bytes) -> CaseFile | None:
        try:
            return decode_case(line)
        except RecordRejected as rejected:
            self._bad_lines += 1
            if len(self._bad) < SHOWN_BAD_LINES:
                self._bad.append(f"line {number}: no case file, {shortened(str(rejected), 200)}")
            return None
