"""`groundwatch run`: two children under one parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from consumer.commands.run import supervise

WAITS = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def leaves_pid(file: Path, code: str = WAITS) -> list[str]:
    return python(f"import os; open({str(file)!r}, 'w').write(str(os.getpid())); {code}")


def wait_for(file: Path) -> int:
    deadline = time.monotonic() + 10
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(file.read_text())


def test_when_one_child_ends_so_does_the_other(tmp_path: Path) -> None:
    other = tmp_path / "pid"
    commands = {"score": leaves_pid(other), "monitor": python("import time, sys; time.sleep(1); sys.exit(3)")}
    assert supervise(commands, threading.Event(), 5.0) == "monitor has ended (exit code 3); see its log above"
    assert not alive(wait_for(other))


def test_a_killed_child_is_named_with_its_signal(tmp_path: Path) -> None:
    victim = tmp_path / "pid"
    result: list[str | None] = []
    commands = {"score": leaves_pid(victim), "monitor": python(WAITS)}
    thread = threading.Thread(target=lambda: result.append(supervise(commands, threading.Event(), 5.0)))
    thread.start()
    os.kill(wait_for(victim), signal.SIGKILL)
    thread.join(10)
    assert result == ["score has ended (signal SIGKILL); see its log above"]


def test_stopping_is_clean_and_does_not_wait_for_the_stubborn(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    began = time.monotonic()
    assert supervise({"score": python(STUBBORN), "monitor": python(WAITS)}, stop, 1.0) is None
    assert time.monotonic() - began < 6.0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_children_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    pids = [tmp_path / "a", tmp_path / "b"]
    code = (
        "import threading; from consumer.commands.run import supervise; "
        f"supervise({{'a': {leaves_pid(pids[0])!r}, 'b': {leaves_pid(pids[1])!r}}}, threading.Event(), 5.0)"
    )
    parent = subprocess.Popen(python(code))
    children = [wait_for(pid) for pid in pids]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while any(alive(child) for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
