"""The model at work on batches of ever other sizes keeps its memory (it once grew by 200 MB in 500 batches)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import random
from pathlib import Path
from consumer.embedders import build_evaluator
from consumer.settings import Settings
from metrics.metric import Text

def anonymous():
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("RssAnon")).split()[1])

embedder = build_evaluator(Settings(), None).embedder
generator = random.Random(1)

def text():
    words = generator.choices(["leave", "form", "claim"], k=generator.randint(1, 12))
    return Text("passage", " ".join(words) + str(generator.random()))

def encode(batches):
    for _ in range(batches):
        embedder.embed([text() for _ in range(generator.randint(1, 6))])

encode(60)
before = anonymous()
encode(300)
print((anonymous() - before) // 1024)
"""


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_number_of_batch_sizes() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 60, "MB of anonymous memory after 300 more batches"
