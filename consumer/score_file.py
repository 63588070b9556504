"""The stream's own scoring on a file: numbered lines in, score records out, in the same order, in bounded memory."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from consumer.case_file import CaseFile
from consumer.decode import Decoded, DecodeError
from consumer.decoding.reasons import Refusal
from consumer.intake import Sampled
from consumer.record import Position, ScoreRecord
from consumer.results import Results
from consumer.segments import Segmenter
from metrics.evaluation import Evaluation, Evaluator, merged
from metrics.event import Event

BATCH_EVENTS = 128
"""More than in the stream, as nobody waits for one event: neighbours share chunks, which are embedded once."""
BATCH_CHARACTERS = 1_000_000
JUDGED_EVENTS = 32
"""With a remote judge, which takes seconds an answer, results are to show sooner."""
GZIP = b"\x1f\x8b"


class FileUnusable(Exception):
    """The file cannot be read or written; one line that says which and why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file. `value` is None where it is longer than the limit; `read` is the bytes consumed so far of the
    file as it lies on the disk."""

    number: int
    value: bytes | None
    read: int


@dataclass(frozen=True, slots=True)
class Done:
    """One event, scored as far as it could be."""

    record: ScoreRecord
    case: CaseFile | None
    """Where the answer is flagged."""
    answer_length: int
    form: str
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that holds no event."""

    number: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A line with the judge's own traffic."""

    number: int


Result = Done | Bad | Ignored


class Source(Protocol):
    def readline(self, size: int, /) -> bytes: ...


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[Source, Callable[[], int]]]:
    """(stream of plain bytes, bytes consumed of the file). gzip is told by its first bytes; `-` is stdin.

    Raises:
        FileUnusable: no such file, or it may not be read.
    """
    try:
        raw = open(0, "rb", closefd=False) if str(path) == "-" else path.open("rb")  # noqa: SIM115
    except OSError as error:
        raise FileUnusable(f"{path}: {error.strerror}") from None
    with raw:
        consumed = raw.tell if raw.seekable() else lambda: 0
        if raw.peek(2)[:2] == GZIP:
            with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
                yield unpacked, consumed
        else:
            yield raw, consumed


def lines(name: str, stream: Source, consumed: Callable[[], int], max_bytes: int) -> Iterator[Line]:
    """Lines that are not blank, without holding more than `max_bytes` of one.

    Raises:
        FileUnusable: the gzip data is damaged or ends early.
    """
    number = 0
    try:
        while piece := stream.readline(max_bytes + 2):
            number += 1
            whole = piece.endswith(b"\n") or len(piece) <= max_bytes
            if not whole:
                while (piece := stream.readline(1 << 20)) and not piece.endswith(b"\n"):
                    pass
                yield Line(number, None, consumed())
            elif piece.strip():
                yield Line(number, piece.rstrip(b"\r\n"), consumed())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileUnusable(f"{name}: the gzip data is damaged after line {number}: {error}") from None


class Decodes(Protocol):
    """What `consumer.decode.Decoder` does, or something in front of it."""

    def decode(self, value: bytes, *, fallback_id: str, broker_time: float | None) -> Decoded: ...


class Redacts(Protocol):
    """What `consumer.redaction.Redactor` does, or something around it."""

    def redact(self, event: Event) -> Event: ...


@dataclass(frozen=True, slots=True)
class Scoring:
    """Decode, redact, segment and score as the stream does; every event, so all probabilities are 1."""

    decoder: Decodes
    redactor: Redacts
    segmenter: Segmenter
    evaluator: Evaluator
    results: Results
    source: str
    event_time: float
    """For events without a usable time of their own, in seconds since the epoch."""
    at_once: int = 1
    """Answers that a remote judge is given at once."""


def results(numbered: Iterable[Line], how: Scoring) -> Iterator[tuple[Line, Result]]:
    """One result per line, in order; events are evaluated in batches."""
    waiting: list[tuple[Line, Result | _Read]] = []
    events = characters = 0
    most = BATCH_EVENTS if how.evaluator.remote is None else max(JUDGED_EVENTS, 4 * how.at_once)
    for line in numbered:
        read = _read(line, how)
        waiting.append((line, read))
        if isinstance(read, _Read):
            events += 1
            characters += _characters(read.event)
        if events >= most or characters >= BATCH_CHARACTERS or len(waiting) >= 10 * BATCH_EVENTS:
            yield from _finished(waiting, how)
            waiting, events, characters = [], 0, 0
    yield from _finished(waiting, how)


@dataclass(frozen=True, slots=True)
class _Read:
    number: int
    event: Event
    form: str
    repairs: tuple[str, ...]


def _read(line: Line, how: Scoring) -> _Read | Bad | Ignored:
    if line.value is None:
        return Bad(line.number, Refusal.TOO_LARGE, "the line is longer than decode.max_bytes")
    try:
        # Stable from file to file, so that answers of two runs over the same questions can be joined.
        decoded = how.decoder.decode(line.value, fallback_id=f"line-{line.number}", broker_time=how.event_time)
        if decoded.ignored:
            return Ignored(line.number)
        return _Read(line.number, how.redactor.redact(decoded.event), decoded.form, decoded.repairs)
    except DecodeError as error:
        return Bad(line.number, error.reason, str(error))


def _finished(waiting: list[tuple[Line, Result | _Read]], how: Scoring) -> Iterator[tuple[Line, Result]]:
    reads = [read for _, read in waiting if isinstance(read, _Read)]
    evaluations = iter(_evaluated([read.event for read in reads], how))
    for line, read in waiting:
        if not isinstance(read, _Read):
            yield line, read
            continue
        event = read.event
        segment, labels = how.segmenter.segment(event), how.segmenter.contrast(event)
        sampled = Sampled(event, segment, labels, Position(how.source, 0, read.number), 1.0, "rate")
        result = how.results.of(sampled, next(evaluations))
        yield line, Done(result.record, result.case, len(event.answer or ""), read.form, read.repairs + result.repairs)


def _evaluated(events: list[Event], how: Scoring) -> list[Evaluation]:
    """Local and remote part of every event. Here an answer waits for the judge: nothing else does."""
    evaluations = how.evaluator.evaluate(events) if events else []
    remote = how.evaluator.remote
    if remote is None or not events:
        return evaluations
    wanted = frozenset(remote.definitions)
    with ThreadPoolExecutor(how.at_once, thread_name_prefix="judge") as pool:
        parts = pool.map(lambda event: remote.judge(event, wanted), events)
        return [merged(evaluation, part) for evaluation, part in zip(evaluations, parts, strict=True)]


def _characters(event: Event) -> int:
    return len(event.answer or "") + len(event.question or "") + sum(len(chunk.text) for chunk in event.contexts)


@contextlib.contextmanager
def written(path: Path, stdout: BinaryIO) -> Iterator[Sink]:
    """A file that is there whole or not at all (`.gz` compresses); `-` is stdout.

    It is written beside its place and moved there when the block ends without an exception.

    Raises:
        FileUnusable: the place cannot be written.
    """
    if str(path) == "-":
        yield stdout
        stdout.flush()
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        file = beside.open("wb")
    except OSError as error:
        raise FileUnusable(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with file:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
