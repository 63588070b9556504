from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer import logs
from consumer.settings import Logging


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    for handler in [h for h in root.handlers if h not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(False)


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def limited(clock: Clock, formatter: logging.Formatter) -> tuple[logging.Logger, io.StringIO, logs.LimitedHandler]:
    stream = io.StringIO()
    handler = logs.LimitedHandler(stream, formatter, logs.RateLimit(clock))
    logger = logging.Logger("aiokafka.conn")
    logger.addHandler(handler)
    return logger, stream, handler


def test_ten_errors_a_second_become_five_lines_and_a_count() -> None:
    # Field case 20: a client logs ten errors a second while a broker is away.
    clock = Clock()
    logger, stream, handler = limited(clock, logs.ConsoleFormatter())
    for second in range(30):
        clock.seconds = 100.0 + second
        for node in range(10):
            logger.error("Unable connect to node with id %s: refused", node)
    handler.close()
    lines = stream.getvalue().splitlines()
    assert sum("suppressed" in line for line in lines) == 3
    assert sum("suppressed" not in line for line in lines) == 15
    assert (
        "aiokafka.conn: suppressed 95 more in 10 s like: Unable connect to node with id 9: refused" in stream.getvalue()
    )


def test_another_message_and_another_logger_are_not_held_back() -> None:
    clock = Clock()
    logger, stream, handler = limited(clock, logs.ConsoleFormatter())
    other = logging.Logger("consumer.scorer")
    other.addHandler(handler)
    for _ in range(50):
        logger.error("the same")
    logger.error("another")
    other.error("the same")
    assert "aiokafka.conn: another" in stream.getvalue()
    assert "consumer.scorer: the same" in stream.getvalue()


def test_what_is_held_back_is_said_when_anything_is_logged_later() -> None:
    clock = Clock()
    logger, stream, _ = limited(clock, logs.ConsoleFormatter())
    for _ in range(8):
        logger.warning("broker away")
    clock.seconds += 11
    logger.info("quite another thing")
    lines = stream.getvalue().splitlines()
    assert lines[-2].endswith("suppressed 3 more in 10 s like: broker away")
    assert lines[-1].endswith("quite another thing")


def test_formatted_before_logging_counts_as_one_template() -> None:
    logger, stream, _ = limited(Clock(), logs.ConsoleFormatter())
    for offset in range(100):
        logger.warning(f"fetch of offset {offset} failed")  # as some libraries do
    assert len(stream.getvalue().splitlines()) == logs.BURST


def test_a_template_without_words_is_told_apart_by_its_message() -> None:
    # librdkafka's messages all come as "%s [%s] %s".
    logger, stream, handler = limited(Clock(), logs.ConsoleFormatter())
    for attempt in range(20):
        logger.error("%s [%s] %s", "FAIL", "groundwatch#producer-1", f"Connection refused (after {attempt}ms)")
    logger.error("%s [%s] %s", "SSL", "groundwatch#producer-1", "certificate verify failed")
    handler.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == logs.BURST + 2
    assert lines[-2].endswith("certificate verify failed")
    assert "suppressed 15 more in 10 s like: FAIL [groundwatch#producer-1] Connection refused (after 19ms)" in lines[-1]


def test_memory_is_bounded_when_every_message_is_new() -> None:
    limit = logs.RateLimit(Clock())
    assert all(limit.admits(("x", 10, "t" * n), "message") for n in range(2 * logs.MAX_TEMPLATES))
    assert len(limit._periods) == logs.MAX_TEMPLATES


HOSTILE = "answer\r\n2026-11-30T10:00:00Z ERROR root: forged\x1b[2J\u2028\u202e\ud800\x00\x85"


@pytest.mark.parametrize("formatter", [logs.ConsoleFormatter(), logs.JsonLineFormatter()])
def test_text_from_an_event_stays_on_its_line(formatter: logging.Formatter) -> None:
    logger, stream, _ = limited(Clock(), formatter)
    logger.error("bad event: %s", HOSTILE)
    written = stream.getvalue()
    assert len(written.splitlines()) == 1
    assert written.isprintable() is False  # its own newline at the end, and
    assert written.rstrip("\n").isprintable()
    written.encode()  # no lone surrogate is left


def test_a_traceback_cannot_forge_a_line() -> None:
    logger, stream, _ = limited(Clock(), logs.ConsoleFormatter())
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logger.exception("scoring failed")
    first, *rest = stream.getvalue().rstrip("\n").split("\n")
    assert first.endswith("aiokafka.conn: scoring failed")
    assert rest
    assert all(line.startswith("  | ") for line in rest)


def test_json_has_time_level_logger_message_exception_and_extra() -> None:
    logger, stream, _ = limited(Clock(), logs.JsonLineFormatter())
    try:
        raise ValueError("no such thing")
    except ValueError:
        logger.exception("failed %d times", 3, extra={"partition": 4, "ratio": float("nan"), "text": HOSTILE})
    line = json.loads(stream.getvalue(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "aiokafka.conn", "failed 3 times")
    assert line["time"].endswith("Z")
    assert "ValueError: no such thing" in line["exception"]
    assert (line["partition"], line["ratio"]) == (4, None)
    assert "\n" not in line["text"]


@given(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=80),
    st.dictionaries(st.text(), st.floats() | st.integers()),
)
def test_any_text_makes_one_strict_json_line(message: str, extra: dict[str, float]) -> None:
    stream = io.StringIO()
    handler = logs.LimitedHandler(stream, logs.JsonLineFormatter(), logs.RateLimit(Clock()))
    handler.handle(logging.makeLogRecord({"msg": message, "args": (), "values": extra}))
    assert stream.getvalue().endswith("\n")
    assert len(stream.getvalue().splitlines()) == 1
    json.loads(stream.getvalue(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://user:pa:ss@word@cache:6379/0", "redis://***@cache:6379/0"),
        ("https://:key@models.example/v1", "https://***@models.example/v1"),
        ("redis://cache:6379/0 and mail to a@example.org", "redis://cache:6379/0 and mail to a@example.org"),
    ],
)
def test_credentials_in_addresses_are_not_logged(text: str, shown: str) -> None:
    assert logs.one_line(text) == shown


def test_a_very_long_message_is_cut_and_says_so() -> None:
    assert logs.one_line("x" * 10_000).endswith("… (2000 characters more)")


def test_configure_twice_writes_once(root: logging.Logger) -> None:
    stream = io.StringIO()
    logs.configure(Logging(format="console"), stream)
    logs.configure(Logging(format="json", level="WARNING"), stream)
    logging.getLogger("consumer.test").warning("once")
    logging.getLogger("consumer.test").info("below the level")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["once"]


def test_one_line_a_request_is_not_logged(root: logging.Logger) -> None:
    stream = io.StringIO()
    logs.configure(Logging(), stream)
    logging.getLogger("httpx").info("HTTP Request: POST /v1/embeddings")
    assert stream.getvalue() == ""
