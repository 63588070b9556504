"""Log lines to stderr, console or JSON: one line a record whatever is in it, no message more often than people read.

A client library logs ten errors a second while a broker is away. Records of one logger with one message template are
let through `BURST` times in `PERIOD` seconds; what is held back is counted and said in one line.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from consumer import settings

BURST = 5
PERIOD = 10.0
MAX_TEMPLATES = 1000
MAX_CHARACTERS = 8000

# Line and page breaks, terminal controls, marks that turn the direction of text, and lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CREDENTIALS = re.compile(r"://[^/\s]*@")
AUDIT = "groundwatch.audit"
"""Who changed or took out what: every line is written, whatever the level and however many there are."""
_QUIET = ("httpx", "httpcore", "urllib3", "filelock")


def configure(logging_settings: settings.Logging, stream: TextIO | None = None) -> None:
    """Send all records to `stream` (default: stderr). A second call replaces what the first one set up."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, LimitedHandler)]:
        root.removeHandler(handler)
        handler.close()
    formatter = JsonLineFormatter() if logging_settings.format == "json" else ConsoleFormatter()
    root.addHandler(LimitedHandler(stream or sys.stderr, formatter, RateLimit(time.monotonic)))
    root.setLevel(logging_settings.level)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    # One line a request is these libraries' INFO.
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)


def one_line(text: str) -> str:
    """`text` with what could break or forge a line written as escapes, credentials in addresses as `***`, and its end
    cut off beyond 8,000 characters.

    >>> one_line("a\\nb redis://:secret@host/0")
    'a\\\\nb redis://***@host/0'
    """
    rest = len(text) - MAX_CHARACTERS
    if rest > 0:
        text = f"{text[:MAX_CHARACTERS]}… ({rest} characters more)"
    return without_credentials(_UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text))


def without_credentials(text: str) -> str:
    """User name and password of every `scheme://user:password@host` in `text` become `***`."""
    return _CREDENTIALS.sub("://***@", text)


@dataclass(slots=True)
class _Period:
    began: float
    passed: int = 0
    held_back: int = 0
    last: str = ""


Key = tuple[str, int, str]
"""Logger, level, message template."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """How many records of one key were not written, and the last of their messages."""

    key: Key
    count: int
    last: str


class RateLimit:
    """Counts records per key. `now` is in seconds on a clock that never goes back."""

    def __init__(self, now: Callable[[], float], burst: int = BURST, period: float = PERIOD) -> None:
        self._now = now
        self._burst = burst
        self._period = period
        self._periods: dict[Key, _Period] = {}

    def admits(self, key: Key, message: str) -> bool:
        """Whether a record may be written; call `ended` first."""
        state = self._periods.get(key)
        if state is None:
            if len(self._periods) >= MAX_TEMPLATES:
                return True
            state = self._periods[key] = _Period(self._now())
        if state.passed < self._burst:
            state.passed += 1
            return True
        state.held_back += 1
        state.last = message
        return False

    def ended(self) -> list[HeldBack]:
        """What was held back under keys whose period is over; they start afresh."""
        return self._take(self._now() - self._period)

    def drain(self) -> list[HeldBack]:
        """All that is held back, whether its period is over or not."""
        return self._take(self._now())

    def _take(self, before: float) -> list[HeldBack]:
        over = {key: state for key, state in self._periods.items() if state.began <= before}
        for key in over:
            del self._periods[key]
        return [HeldBack(key, state.held_back, state.last) for key, state in over.items() if state.held_back]


class LimitedHandler(logging.Handler):
    """Writes admitted records; says what was held back when its period is over, or at the end of the process."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter, limit: RateLimit) -> None:
        super().__init__()
        self._stream = stream
        self._limit = limit
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for held_back in self._limit.ended():
                self._say(held_back)
            if record.name == AUDIT or self._limit.admits(
                (record.name, record.levelno, _template(record)), record.getMessage()
            ):
                self._write(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        self.acquire()
        try:
            # Where stderr is gone nobody is left to tell.
            with contextlib.suppress(OSError, ValueError):
                for held_back in self._limit.drain():
                    self._say(held_back)
        finally:
            self.release()
        super().close()

    def _say(self, held_back: HeldBack) -> None:
        name, level, _ = held_back.key
        message = f"suppressed {held_back.count} more in {PERIOD:.0f} s like: {held_back.last[:300]}"
        self._write(logging.LogRecord(name, level, "", 0, message, None, None))

    def _write(self, record: logging.LogRecord) -> None:
        self._stream.write(self.format(record) + "\n")
        self._stream.flush()


class ConsoleFormatter(logging.Formatter):
    """`2026-11-30T10:00:00.123Z WARNING consumer.scorer: message`; a traceback follows, each line set off by `|`."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {one_line(record.getMessage())}"
        return "".join([line, *(f"\n  | {one_line(part)}" for part in _traceback(self, record))])


class JsonLineFormatter(logging.Formatter):
    """One JSON object: time, level, logger, message, `exception` where there is one, and what `extra=` gave."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": one_line(record.getMessage()),
        }
        traceback = [one_line(part) for part in _traceback(self, record)]
        if traceback:
            fields["exception"] = "\n".join(traceback)
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        # orjson writes a non-finite number as null and refuses a lone surrogate: nothing but strict JSON gets out.
        return orjson.dumps(fields | _plain(extra)).decode()


_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {one_line(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, type(None))) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return one_line(str(value))


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts += formatter.formatException(record.exc_info).splitlines()
    if record.stack_info:
        parts += record.stack_info.splitlines()
    return parts


def _template(record: logging.LogRecord) -> str:
    """What records of one kind have in common. Some libraries format before they log, and librdkafka's template is
    `%s [%s] %s`: there the message itself tells the kind, with its numbers left out."""
    template = record.msg if isinstance(record.msg, str) else ""
    if not re.search("[A-Za-z]{3}", template):
        template = record.getMessage()
    return re.sub(r"\d+", "#", template[:200])
