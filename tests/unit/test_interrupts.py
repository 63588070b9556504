"""Ctrl-C is held while the Kafka client is called, and is never lost."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from consumer.interrupts import Interrupts


def interrupted_call(interrupts: Interrupts, times: int, reached: list[str]) -> None:
    with interrupts.held():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        reached.append("the end of the call")


def test_an_interrupt_inside_a_call_comes_at_its_end() -> None:
    interrupts, reached = Interrupts(), list[str]()
    with interrupts.installed():
        with pytest.raises(KeyboardInterrupt):
            interrupted_call(interrupts, 1, reached)
        interrupted_call(interrupts, 0, reached)
    assert reached == ["the end of the call"] * 2


def test_a_second_interrupt_is_not_held() -> None:
    interrupts, reached = Interrupts(), list[str]()
    with interrupts.installed(), pytest.raises(KeyboardInterrupt):
        interrupted_call(interrupts, 2, reached)
    assert reached == []


def test_outside_a_call_it_comes_at_once_and_the_old_handler_returns() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts().installed():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_may_use_it_too() -> None:
    done = []

    def work() -> None:
        with Interrupts().installed():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
