"""Which precision a model runs in here: the quickest that says nearly what float32 says; measured, then remembered."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
import torch

from metrics.encoder import Precision

log = logging.getLogger(__name__)

FILE = "precision.json"
LEAST_GAIN = 1.10
ROUNDS = 3
CANDIDATES: tuple[Precision, ...] = ("bf16", "int8")
Clock = Callable[[], float]
Model = TypeVar("Model")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Model, Answer]):
    """How two precisions of a model are told apart.

    `make` gives the model in a precision, `said` what it says of fixed texts, `apart` how far two such answers lie
    apart (infinite where one is not finite): at most `most_apart` is agreement. `work` is what is timed.
    """

    make: Callable[[Precision], Model]
    said: Callable[[Model], Answer]
    apart: Callable[[Answer, Answer], float]
    most_apart: float
    work: Callable[[Model], object]


@dataclass(frozen=True, slots=True)
class Trial:
    """One precision: the seconds that the work took at best, and how far its answer lies from float32's."""

    precision: Precision
    seconds: float
    difference: float


def choose(trials: Sequence[Trial], most_apart: float) -> Precision:
    """The quickest that agrees, if it is more than a tenth quicker than float32; else float32.

    >>> choose([Trial("fp32", 1.0, 0.0), Trial("bf16", 0.6, 0.001), Trial("int8", 0.4, 0.2)], 0.03)
    'bf16'
    >>> choose([Trial("fp32", 1.0, 0.0), Trial("bf16", 0.95, 0.001)], 0.03)
    'fp32'
    """
    exact = next(trial for trial in trials if trial.precision == "fp32")
    fit = [t for t in trials if t.difference <= most_apart and t.seconds * LEAST_GAIN < exact.seconds]
    return min(fit, key=lambda t: t.seconds).precision if fit else "fp32"


def chosen(
    folder: Path, name: str, comparison: Comparison[Model, Answer], now: Clock = time.perf_counter
) -> tuple[Precision, tuple[Trial, ...]]:
    """The choice for the model of this name on this machine, and the trials behind it; kept in `folder`."""
    key = f"{name} {machine()}"
    choices = _remembered(folder / FILE)
    with contextlib.suppress(KeyError, TypeError, StopIteration):
        known: Any = choices[key]
        trials = tuple(Trial(**trial) for trial in known)
        return choose(trials, comparison.most_apart), trials
    trials = measured(comparison, now)
    _remember(folder / FILE, choices | {key: [asdict(trial) for trial in trials]})
    return choose(trials, comparison.most_apart), trials


def measured(comparison: Comparison[Model, Answer], now: Clock = time.perf_counter) -> tuple[Trial, ...]:
    """Every precision on the same texts, float32 first. What this torch cannot do is left out."""
    models: dict[Precision, Model] = {"fp32": comparison.make("fp32")}
    exact = comparison.said(models["fp32"])
    apart = {"fp32": 0.0}
    for precision in CANDIDATES:
        try:
            model = comparison.make(precision)
            apart[precision] = comparison.apart(comparison.said(model), exact)
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            first_line = str(error).partition("\n")[0] or type(error).__name__
            log.info("precision %s is not to be had here: %s", precision, first_line)
            continue
        models[precision] = model
    seconds = _timed(models, comparison.work, now)
    return tuple(Trial(precision, seconds[precision], apart[precision]) for precision in models)


def _timed(models: Mapping[Precision, Model], work: Callable[[Model], object], now: Clock) -> dict[Precision, float]:
    """In turn, and the best of each: other work on the machine slows a run, never speeds it up."""
    seconds = dict.fromkeys(models, float("inf"))
    for _ in range(ROUNDS):
        for precision, model in models.items():
            started = now()
            work(model)
            seconds[precision] = min(seconds[precision], max(now() - started, 1e-9))
    return seconds


def machine() -> str:
    """Names what the measurement holds for: processor and its flags, torch, threads."""
    flags = platform.processor() + torch.backends.cpu.get_cpu_capability()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        for name in ("flags", "model name"):
            flags += next((line for line in lines if line.startswith(name)), "")
    digest = hashlib.sha256(flags.encode()).hexdigest()[:12]
    return f"cpu-{digest} torch-{torch.__version__} threads-{torch.get_num_threads()}"


def _remembered(path: Path) -> dict[str, object]:
    """The choices that are kept in a file; none where it is absent or damaged."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(path: Path, choices: dict[str, object]) -> None:
    """Where it cannot be written, the next start measures anew."""
    working = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        working.write_bytes(orjson.dumps(choices, option=orjson.OPT_INDENT_2))
        working.replace(path)
    except OSError as error:
        log.info("the choice of precision is measured anew at every start: %s cannot be written (%s)", path, error)
