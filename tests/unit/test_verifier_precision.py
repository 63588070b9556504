"""Which precision the verifier's layers run in: the quickest of those that agree with float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metrics.encoder import Precision
from metrics.precision import chosen, measured
from metrics.verifier.precision import MEAN_DIFFERENCE, comparison
from metrics.verifier.reader import Asked, Opinion


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@dataclass(frozen=True)
class Network:
    """Takes `seconds` for every call; `error` lies on every probability of support."""

    clock: Clock
    seconds: float
    error: float

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def opinions(self, asked: Sequence[Asked]) -> list[list[Opinion]]:
        self.clock.time += self.seconds
        said = Opinion((0.5 + self.error, 0.5 - self.error, 0.0), np.zeros(0, np.float32))
        return [[said for _ in own] for _, own in asked]


class Making:
    """Networks by precision, and which were asked for."""

    def __init__(self, **networks: tuple[float, float]) -> None:
        self.clock, self.made = Clock(), list[str]()
        self.error = "no such instruction\nat line 1"
        self._networks = networks

    def __call__(self, precision: Precision) -> Network:
        self.made.append(precision)
        if precision not in self._networks:
            raise RuntimeError(self.error)
        return Network(self.clock, *self._networks[precision])


def best(folder: Path, making: Making) -> str:
    precision, _ = chosen(folder, "abc", comparison(making), making.clock)
    return precision


def test_the_quickest_that_agrees(tmp_path: Path) -> None:
    making = Making(fp32=(3.0, 0.0), bf16=(2.0, 0.001), int8=(1.0, 0.01))
    assert best(tmp_path, making) == "int8"
    trials = {t.precision: t for t in measured(comparison(making), making.clock)}
    assert trials["int8"].seconds == 1.0
    assert abs(trials["int8"].difference - 0.02 / 3) < 1e-9


def test_what_differs_is_not_taken_however_quick(tmp_path: Path) -> None:
    assert best(tmp_path, Making(fp32=(3.0, 0.0), bf16=(2.0, 0.001), int8=(1.0, 2 * MEAN_DIFFERENCE))) == "bf16"
    assert best(tmp_path / "a", Making(fp32=(3.0, 0.0), bf16=(2.0, float("nan")), int8=(2.9, 0.0))) == "fp32"


def test_what_the_processor_lacks_is_left_out(tmp_path: Path) -> None:
    assert best(tmp_path, Making(fp32=(3.0, 0.0), bf16=(2.0, 0.0))) == "bf16"
    silent = Making(fp32=(3.0, 0.0))
    silent.error = ""
    assert best(tmp_path / "silent", silent) == "fp32"


def test_the_choice_is_remembered_for_these_weights_and_this_machine(tmp_path: Path) -> None:
    making = Making(fp32=(3.0, 0.0), bf16=(2.0, 0.0), int8=(1.0, 0.0))
    assert best(tmp_path, making) == "int8"
    again = Making(fp32=(3.0, 0.0))
    assert best(tmp_path, again) == "int8"
    assert again.made == []
    assert chosen(tmp_path, "other weights", comparison(again), again.clock)[0] == "fp32"
    for damaged in (b"", b"[]", b'{"abc": 1}'):
        (tmp_path / "precision.json").write_bytes(damaged)
        assert best(tmp_path, Making(fp32=(3.0, 0.0))) == "fp32"
