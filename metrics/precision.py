"""Which precision a model runs in here: measured once for speed and agreement with float32, then remembered."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import torch

from metrics.embedding import Network
from metrics.encoder import Precision, load_encoder
from metrics.self_test import AGREEMENT
from metrics.tokens import Tokens

log = logging.getLogger(__name__)

FILE = "precision.json"
LARGEST_DIFFERENCE = 5e-4
"""Between a cosine at this precision and in float32, over all pairs of the self-test."""
LEAST_GAIN = 1.10
ROUNDS = 3
CANDIDATES: tuple[Precision, ...] = ("bf16", "int8")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Trial:
    """One precision on the self-test: tokens a second, and the largest difference of a cosine from float32's, also when
    a text is encoded alone."""

    precision: Precision
    tokens_per_second: float
    difference: float


@dataclass(frozen=True, slots=True)
class Choice:
    precision: Precision
    trials: tuple[Trial, ...]


def choose(trials: Sequence[Trial]) -> Precision:
    """The fastest precision that agrees with float32 and is more than a tenth faster; else float32.

    >>> choose([Trial("fp32", 100, 0), Trial("bf16", 190, 3e-4), Trial("int8", 300, 2e-2)])
    'bf16'
    >>> choose([Trial("fp32", 100, 0), Trial("bf16", 105, 3e-4)])
    'fp32'
    """
    exact = next(trial for trial in trials if trial.precision == "fp32")
    fit = [
        t
        for t in trials
        if t.difference < LARGEST_DIFFERENCE and t.tokens_per_second > LEAST_GAIN * exact.tokens_per_second
    ]
    return max(fit, key=lambda t: t.tokens_per_second).precision if fit else "fp32"


def chosen(folder: Path, tokens: Tokens, now: Clock = time.perf_counter) -> Choice:
    """The remembered choice for this processor, torch and thread count; measured and remembered where there is none."""
    key = machine()
    choices = remembered(folder / FILE)
    with contextlib.suppress(KeyError, TypeError):
        known: Any = choices[key]
        return Choice(known["precision"], tuple(Trial(**trial) for trial in known["trials"]))
    trials = measure(folder, tokens, now)
    choice = Choice(choose(trials), trials)
    remember(folder / FILE, choices | {key: asdict(choice)})
    return choice


def measure(folder: Path, tokens: Tokens, now: Clock = time.perf_counter) -> tuple[Trial, ...]:
    """Every precision on the self-test's texts, float32 first. A precision that this torch cannot do is left out."""
    pieces = [[*tokens.before, *ids[: tokens.limit - 8], *tokens.after] for ids in tokens.cut(AGREEMENT)]
    networks: dict[Precision, Network] = {"fp32": load_encoder(folder, "fp32")}
    vectors = {"fp32": networks["fp32"].encode(pieces)}
    differences = {"fp32": 0.0}
    for precision in CANDIDATES:
        try:
            candidate = load_encoder(folder, precision)
            vectors[precision] = candidate.encode(pieces)
            alone = np.concatenate([candidate.encode([piece]) for piece in pieces[::3]])
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            log.info("precision %s is not to be had here: %s", precision, str(error).splitlines()[0])
            continue
        networks[precision] = candidate
        differences[precision] = max(_apart(vectors[precision], vectors["fp32"]), _apart(alone, vectors["fp32"][::3]))
    seconds = dict.fromkeys(networks, float("inf"))
    for _ in range(ROUNDS):  # in turn, and the best of each: other work on the machine slows a run, never speeds it up
        for precision, network in networks.items():
            started = now()
            network.encode(pieces)
            seconds[precision] = min(seconds[precision], max(now() - started, 1e-9))
    total = sum(map(len, pieces))
    return tuple(Trial(precision, total / seconds[precision], differences[precision]) for precision in networks)


def _apart(vectors: npt.NDArray[np.float32], reference: npt.NDArray[np.float32]) -> float:
    """The largest difference of a cosine; infinite where one is not finite."""
    difference = np.abs(vectors @ vectors.T - reference @ reference.T)
    return float(difference.max()) if np.isfinite(difference).all() else float("inf")


def machine() -> str:
    """Names what the measurement holds for: processor and its flags, torch, threads."""
    flags = platform.processor() + torch.backends.cpu.get_cpu_capability()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        for name in ("flags", "model name"):
            flags += next((line for line in lines if line.startswith(name)), "")
    digest = hashlib.sha256(flags.encode()).hexdigest()[:12]
    return f"cpu-{digest} torch-{torch.__version__} threads-{torch.get_num_threads()}"


def remembered(path: Path) -> dict[str, object]:
    """The choices that are kept in a file; none where it is absent or damaged."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(path: Path, choices: dict[str, object]) -> None:
    """Where it cannot be written, the next start measures anew."""
    working = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        working.write_bytes(orjson.dumps(choices, option=orjson.OPT_INDENT_2))
        working.replace(path)
    except OSError as error:
        log.info("the choice of precision is measured anew at every start: %s cannot be written (%s)", path, error)
