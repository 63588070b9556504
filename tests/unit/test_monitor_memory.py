"""What the monitor keeps is bounded, and small: an addition to it that takes much must be seen here first."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import orjson

from consumer.scorebook import Logged, Scorebook
from consumer.settings import Settings
from metrics.sketch import DIMENSION
from metrics.sketch_reservoir import SLICE_KEPT, SLICES, Reservoirs
from tests.bench.monitor import APPS, LANGS, Records

NOW = 1_790_000_000.0
DAY = 86_400.0
STATE_MB = 14.0
"""Of 20 segments and 3 metrics at default settings; ids, which grow to 16 MB, are not counted."""
PASSING_MB = 5.0
"""What one look at drift and changes may take beside it."""


def logged(records: Records, number: int, begin: float, end: float) -> Iterator[Logged]:
    for i in range(number):
        at = begin + (end - begin) * i / number
        yield records.next(at), at


def test_a_full_window_takes_little_and_looking_at_it_not_much_more() -> None:
    settings = Settings.model_validate({"segments": {"allow": {"app": APPS, "lang": LANGS}}})
    clock = [NOW - DAY]
    records = Records()
    tracemalloc.start()
    try:
        book = Scorebook(settings, lambda: clock[0])
        book.restore_older()(logged(records, 1000, NOW - 2 * DAY, NOW - DAY))
        clock[0] = NOW
        book.restored()
        for value, at in logged(records, 1000, NOW - DAY, NOW):
            book.count(value, at)
        book.attend()
        state, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(5):
            clock[0] += 5.0
            book.attend()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state / 1e6 < STATE_MB
    assert (peak - state) / 1e6 < PASSING_MB


def test_sketches_of_a_full_slice_are_kept_as_they_came() -> None:
    rng = random.Random(5)
    reservoirs = Reservoirs({"24h": DAY}, [("helpdesk", "en")])
    records = Records()
    sketches = itertools.cycle([records.next(NOW) for _ in range(8)])
    tracemalloc.start()
    try:
        for number in range(4 * SLICE_KEPT):
            record = orjson.loads(next(sketches))
            name = record["versions"]["embedder"]
            reservoirs.add(str(number), record["sketch"], rng.random(), name, ("helpdesk", "en"), NOW, NOW)
            del record, name
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Two sketches of float16 and a rank for each, and room for growth; of 33 segments and two windows that is 8 MB.
    assert kept < 1.3 * SLICE_KEPT * (2 * DIMENSION * 2 + 8 + 8)
    assert SLICES * SLICE_KEPT <= 400


def test_the_monitor_loads_nothing_that_it_can_do_without() -> None:
    script = """
import os, sys
from consumer.commands.monitor import _load
assert "numpy" not in sys.modules
_load()
assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
import numpy as np
from metrics.drift import NullLevels, Sample, drift
from metrics.ranges import SHARE
from metrics.sketch_distance import sketch_distance
sample = Sample(np.ones(50), 500, 400.0)
drift(sample, sample, SHARE), NullLevels().of(sample, sample, SHARE)
assert sketch_distance(*(np.arange(6400.0, dtype=np.float32).reshape(200, 32) % prime for prime in (7, 11)))
unwanted = ("torch", "transformers", "scipy", "matplotlib", "pandas", "rich", "jmespath", "numpy.random", "numpy.ma")
print(*[name for name in unwanted if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stderr
