"""Says in one line what was skipped and why, so that a green run on a bare machine is not read as more than it is."""

from __future__ import annotations

import os
from collections import Counter

import pytest

# As in the monitor: two threads that solve small systems in turn with other processes take a hundred times as long.
# Before any test imports numpy, which reads it once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        said = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped: {said}", yellow=True)
