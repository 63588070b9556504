"""When the judge is left alone: failures in a row that no success contradicts."""

from __future__ import annotations

import itertools

from consumer.judging.circuit import FAILURES, Circuit


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def opened(clock: Clock) -> Circuit:
    circuit = Circuit(clock)
    outcomes = [circuit.failed(clock.time) for _ in range(FAILURES)]
    assert outcomes == [False] * (FAILURES - 1) + [True]
    return circuit


def test_failures_in_a_row_open_it_and_a_success_closes_it() -> None:
    clock = Clock()
    circuit = opened(clock)
    assert circuit.is_open
    clock.time += 5
    assert circuit.open_seconds == 5
    assert not circuit.failed(clock.time), "it is open already"
    circuit.succeeded()
    assert not circuit.is_open
    assert circuit.open_seconds == 0


def test_a_success_between_starts_the_count_again() -> None:
    clock = Clock()
    circuit = Circuit(clock)
    for _ in range(5):
        for _ in range(FAILURES - 1):
            assert not circuit.failed(clock.time)
        circuit.succeeded()
    assert not circuit.is_open


def test_hangs_that_end_together_do_not_open_it_where_others_were_answered_meanwhile() -> None:
    """Field case 28: twenty answers come in at once, three hang, the others are judged at once."""
    clock = Clock()
    circuit = Circuit(clock)
    sent = clock.time
    clock.time += 0.2
    circuit.succeeded()
    clock.time += 10
    assert not any(circuit.failed(sent) for _ in range(10))
    assert not circuit.is_open
    # Of those that were sent after the last success, three are enough.
    assert [circuit.failed(sent + 0.3) for _ in range(FAILURES)][-1]


def test_the_judge_is_tried_after_pauses_that_grow() -> None:
    clock = Clock()
    circuit = opened(clock)
    tries = []
    for _ in range(1200):
        clock.time += 0.1
        if circuit.probe_is_due():
            tries.append(clock.time)
            circuit.probe_failed()
    pauses = [round(b - a) for a, b in itertools.pairwise(tries)]
    assert pauses == [2, 4, 8, 16, 30, 30]
