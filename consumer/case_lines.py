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


class CaseLinesError(Exception):
    """The file cannot be read, or a line holds no case file; one line that says which."""


class CaseLines:
    """The case files of one file, read anew by every method."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def select(self, wanted: CaseFilter, limit: int | None = None) -> list[CaseFile]:
        """The cases that match, newest event first."""
        return newest_matching(self._cases(), wanted, limit)

    def find(self, reference: str) -> list[CaseFile]:
        """The cases that `reference` names."""
        return named(self._cases(), reference)

    def labels(self, cases: Sequence[CaseFile]) -> dict[str, Label]:
        """None: a file holds cases as they were written."""
        return {}

    def _cases(self) -> Iterator[CaseFile]:
        try:
            opened = gzip.open if self._path.suffix == ".gz" else open
            with opened(self._path, "rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield self._decoded(number, line)
        except (OSError, EOFError, zlib.error) as error:
            raise CaseLinesError(f"{self._path}: {getattr(error, 'strerror', None) or error}") from None

    def _decoded(self, number: int, line: bytes) -> CaseFile:
        try:
            return decode_case(line)
        except RecordRejected as rejected:
            raise CaseLinesError(
                f"{self._path}, line {number}: no case file, {rejected} (score-file --cases writes them)"
            ) from None
