"""The judge's budget over simulated days: never above its limits, never a hole, and unbiased."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from consumer.judge_settings import Judge
from consumer.judging.budget import DAY, FLOOR, Budget

MIDNIGHT = 20_000 * DAY


@dataclass
class Clock:
    at: float = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return MIDNIGHT + self.at


@dataclass
class Day:
    """What a simulated day came to; `by_minute` counts calls."""

    calls: int
    tokens: int
    by_minute: list[int]
    arrived: int
    weight: float


def judge(**limits: int) -> Judge:
    return Judge.model_validate({"kind": "llm", "url": "http://j/v1", "model": "m"} | limits)


def simulate(
    settings: Judge,
    rate: Callable[[float], float],
    *,
    seconds: float = DAY,
    latency: float = 5.0,
    calls_each: int = 3,
    tokens_each: int = 2500,
    start: float = 0.0,
) -> Day:
    """Answers arrive at `rate(second)`, cost what they cost, and come back after `latency`."""
    generator = random.Random(5)
    clock = Clock(start)
    budget = Budget(settings, clock.now, clock.wall)
    day = Day(0, 0, [0] * (int(seconds / 60) + 1), 0, 0.0)
    at_judge: list[float] = []
    end = start + seconds
    while True:
        clock.at += generator.expovariate(rate(clock.at))
        if clock.at >= end:
            return day
        while at_judge and at_judge[0] <= clock.at:
            at_judge.pop(0)
            budget.spent(calls_each, tokens_each)
            budget.finished()
        day.arrived += 1
        included = budget.admits(generator.random(), 1.0)
        if included is not None:
            at_judge.append(clock.at + latency)
            day.calls += calls_each
            day.tokens += tokens_each
            day.by_minute[int((clock.at - start) / 60)] += calls_each
            day.weight += 1.0 / included


def holes(day: Day, minutes: int) -> int:
    """Stretches of so many minutes without one call."""
    return sum(not any(day.by_minute[at : at + minutes]) for at in range(0, len(day.by_minute) - minutes, minutes))


def test_without_limits_everything_is_admitted() -> None:
    day = simulate(judge(), lambda t: 5.0, seconds=600)
    assert day.calls == 3 * day.arrived


@pytest.mark.parametrize("rate", [0.05, 1.0, 3.0])
def test_a_days_calls_last_for_the_whole_day(rate: float) -> None:
    day = simulate(judge(calls_per_day=6000), lambda t: rate)
    assert day.calls <= 6000 * 1.01
    # 0.05/s would cost 12,960 calls: all rates are above the budget, so it is used up too.
    assert day.calls >= 6000 * 0.9
    assert holes(day, 30) == 0


def test_a_quiet_night_leaves_more_for_the_day() -> None:
    day = simulate(judge(calls_per_day=6000), lambda t: 0.005 if t < DAY / 3 else 1.0)
    assert 6000 * 0.9 <= day.calls <= 6000 * 1.01
    assert holes(day, 60) <= 1


def test_a_minutes_tokens_are_kept_though_arrivals_jump_a_hundredfold() -> None:
    limit = 50_000
    day = simulate(judge(tokens_per_minute=limit), lambda t: 0.1 if t < 1800 else 10.0, seconds=3600)
    after = [calls / 3 * 2500 for calls in day.by_minute[31:60]]
    assert sum(after) / len(after) <= limit * 1.05
    assert min(after) > 0
    # The rise itself is seen within a tick: one minute may hold a bucket that was full, once.
    assert max(calls / 3 * 2500 for calls in day.by_minute) <= 2.5 * limit


def test_weights_stand_for_everything_that_arrived() -> None:
    """Invariant 11: the sum of 1/p over judged answers estimates the number of all answers."""
    day = simulate(judge(calls_per_minute=60), lambda t: 2.0 + math.sin(t / 300), seconds=4 * 3600)
    assert day.weight / day.arrived == pytest.approx(1.0, abs=0.05)


def test_a_restart_does_not_renew_a_days_budget() -> None:
    day = simulate(judge(calls_per_day=6000), lambda t: 1.0, start=DAY / 2, seconds=DAY / 2 - 1)
    assert day.calls <= 3000 * 1.02


def test_a_spent_budget_never_closes_the_tap() -> None:
    clock = Clock()
    budget = Budget(judge(calls_per_day=10), clock.now, clock.wall)
    budget.spent(1000, 0)
    for _ in range(100):
        clock.at += 1.0
        assert (budget.admits(FLOOR / 2, 1.0) is not None) or budget.share >= FLOOR
    assert budget.share == FLOOR


def test_the_sample_of_a_lower_share_lies_inside_that_of_a_higher_one() -> None:
    clock = Clock()
    budget = Budget(judge(calls_per_minute=12), clock.now, clock.wall)
    for number in range(200):
        clock.at += 0.1
        included = budget.admits((number % 100) / 100 * 0.5, 0.5)
        assert included is None or (number % 100) / 100 * 0.5 < included <= 0.5


def test_a_judge_that_fails_costs_nothing_and_thins_nothing() -> None:
    """A hang is judge_busy and judge_timeout, never `budget`: the loss must show as coverage."""
    clock = Clock()
    budget = Budget(judge(tokens_per_minute=60_000), clock.now, clock.wall)
    shares = []
    for _ in range(3000):
        clock.at += 0.2
        if budget.admits(0.0, 1.0) is not None:
            budget.finished()
        shares.append(budget.share)
    assert min(shares[1500:]) == 1.0
