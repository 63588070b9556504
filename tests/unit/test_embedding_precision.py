"""Which precision is chosen, and that the choice is remembered for this machine only."""

from __future__ import annotations

from metrics.precision import Trial, choose


def test_fastest_that_agrees_wins() -> None:
    trials = [Trial("fp32", 1000, 0.0), Trial("bf16", 1800, 3e-4), Trial("int8", 1500, 1e-4)]
    assert choose(trials) == "bf16"


def test_speed_does_not_buy_disagreement() -> None:
    assert choose([Trial("fp32", 1000, 0.0), Trial("int8", 9000, 6e-4)]) == "fp32"
    assert choose([Trial("fp32", 1000, 0.0), Trial("bf16", 9000, float("inf"))]) == "fp32"


def test_small_gain_is_not_worth_another_precision() -> None:
    assert choose([Trial("fp32", 1000, 0.0), Trial("bf16", 1090, 1e-5)]) == "fp32"
