"""The count of what was sent, where Ctrl-C comes at the worst moment; the rest: integration/test_send.py."""

from __future__ import annotations

import time

import pytest

from consumer.commands.send import _send
from consumer.interrupts import Interrupts
from consumer.score_file import Line
from consumer.sending import Sender
from consumer.settings import Settings


class InterruptedIdentify:
    def __call__(self, value: bytes) -> tuple[bytes | None, list[tuple[str, str | bytes | None]]]:
        raise KeyboardInterrupt


def test_an_event_that_ctrl_c_kept_from_the_client_is_not_told_as_lost() -> None:
    sender = Sender(Settings(), "qa.events", 1.0, time.monotonic, Interrupts())
    with pytest.raises(KeyboardInterrupt):
        _send(sender, Line(1, b"{}", 2), InterruptedIdentify())
    assert (sender.tally.asked, sender.tally.delivered, sender.tally.lost.total()) == (0, 0, 0)


def test_a_line_that_is_too_long_is_counted_and_lost() -> None:
    sender = Sender(Settings(), "qa.events", 1.0, time.monotonic, Interrupts())
    _send(sender, Line(1, None, 2), InterruptedIdentify())
    assert (sender.tally.asked, sender.tally.lost.total()) == (1, 1)
