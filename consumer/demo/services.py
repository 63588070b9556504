"""What the demo runs on: an embedded broker and Redis, topics, and both workers as child processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from consumer.demo.knowledge import APPS, LANGUAGES
from consumer.demo.readings import answers
from consumer.embedded import embedded_broker, embedded_redis, free_port
from consumer.settings import Settings
from consumer.settings_source import PREFIX, load
from consumer.topics import create_topics

WINDOWS = {"12s": 12.0, "60s": 60.0, "5m": 300.0}
SAMPLING_RATE = 0.5
STOP_SECONDS = 3.0
CACHE_OPTIONS = ("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
READY_SECONDS = 300.0
PORTS = ((9108, 9109, 9110), (0, 0, 0), (0, 0, 0))
"""Of scorer, monitor and pages, by attempt: the usual ones, then any. A port that was free may be taken soon after."""
THRESHOLDS: Mapping[str, Mapping[str, float]] = {
    "lang=en": {"topic_similarity": 0.73, "question_context_similarity": 0.823},
    "lang=zh": {"topic_similarity": 0.85, "question_context_similarity": 0.876},
}
"""Similarities of answers that are flagged, under the default embedder. Of question and context: below the 2nd
percentile of the help desk's calm traffic (it tells retrieval from generation). Of context and answer: below nearly all
of it (refusals are low). Another embedder has other cosines, and then there are none."""
KEPT = f"{PREFIX}EMBEDDING__"
"""All that the demo takes over from the environment: nothing there may point it at a production broker."""


class DemoError(Exception):
    """The demo cannot go on; the message says what failed and what the failing part said."""


class PortTaken(DemoError):
    """Somebody else took a worker's port between the look and the listening."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that is running. `file` is the settings file that all commands on it can use."""

    settings: Settings
    file: Path
    scorer_address: str
    monitor_address: str
    pages_address: str
    workers: Mapping[str, Worker]

    def check(self) -> None:
        """Raises:
        DemoError: a worker has ended.
        """
        for worker in self.workers.values():
            worker.check()


@dataclass(frozen=True, slots=True)
class Worker:
    """A child process, its log, and where it serves /metrics (HOST:PORT)."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    address: str

    def check(self) -> None:
        """Raises:
        PortTaken: it has ended, as its port is somebody else's.
        DemoError: it has ended.
        """
        code = self.process.poll()
        if code is not None:
            port = int(self.address.rpartition(":")[2])
            if free_port(port) != port:
                raise PortTaken(f"port {port} of the {self.name} was taken by somebody else")
            said = "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
            raise DemoError(f"the {self.name} ended with exit code {code}; it said:\n{said}")

    def ready(self) -> bool:
        """It says that it listens (another process might have the port and answer in its place), and is ready."""
        listens = f"http://{self.address}/metrics" in self.log.read_text(errors="replace")
        return listens and answers(self.address, "/readyz")


@contextlib.contextmanager
def services(folder: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> Iterator[Services]:
    """Start everything in `folder` and end it afterwards. `say` tells what takes time.

    Raises:
        EmbeddedError: the broker or Redis does not start.
        DemoError: a worker ends or is not ready in time.
    """
    environ = {k: v for k, v in environ.items() if not k.startswith(PREFIX) or k.startswith(KEPT)}
    with contextlib.ExitStack() as stack:
        say("starting an embedded broker and Redis")
        broker = stack.enter_context(embedded_broker(folder / "broker.log"))
        cache = stack.enter_context(embedded_redis(folder / "cache.log", *CACHE_OPTIONS))
        cases = stack.enter_context(embedded_redis(folder / "cases.log"))
        say("starting scorer and monitor (on first use the embedding model is prepared, which takes some seconds more)")
        for attempt, ports in enumerate(PORTS, start=1):
            scorer, monitor, pages = (f"127.0.0.1:{free_port(port)}" for port in ports)
            file = folder / "groundwatch.toml"
            text = settings_text(broker, cache, cases, (scorer, monitor, pages))
            if f"{PREFIX}EMBEDDING__MODEL" not in environ:
                text += threshold_text()
            file.write_text(text, encoding="utf-8")
            settings = load(file, environ).settings
            create_topics(settings, timeout=10.0)
            try:
                workers = stack.enter_context(_workers(file, folder, environ, {"scorer": scorer, "monitor": monitor}))
                break
            except PortTaken as taken:
                if attempt == len(PORTS):
                    raise
                say(f"{taken}; trying others")
        yield Services(settings, file, scorer, monitor, pages, workers)


def settings_text(broker: str, cache: str, cases: str, listen: tuple[str, str, str]) -> str:
    """The demo's settings file: short windows, half of the events sampled, thumbs-down answers always. `listen`: where
    scorer, monitor and pages do."""
    scorer, monitor, pages = listen
    tables: dict[str, dict[str, object]] = {
        "kafka": {"bootstrap_servers": broker},
        "topics": {"partitions": 3},
        "sampling": {"rate": SAMPLING_RATE},
        "redis": {"cache_url": cache, "cases_url": cases},
        "segments.allow": {"app": APPS, "lang": LANGUAGES},
        "scorer": {"shutdown_seconds": STOP_SECONDS - 1, "commit_interval_seconds": 0.5},
        "monitor.windows": dict(WINDOWS),
        "metrics.scorer": {"listen": scorer},
        "metrics.monitor": {"listen": monitor},
        "pages": {"listen": pages},
    }
    text = "# Written by `groundwatch demo`; gone when it ends.\n"
    for name, keys in tables.items():
        # JSON's text, numbers and lists of text are TOML's too.
        rows = "\n".join(f"{orjson.dumps(k).decode()} = {orjson.dumps(v).decode()}" for k, v in keys.items())
        text += f"\n[{name}]\n{rows}\n"
    return text + '\n[[sampling.always]]\nname = "thumbs_down"\nnegative_feedback = true\n'


def threshold_text() -> str:
    """The part of the settings file with the thresholds of similarities."""
    return "".join(
        f"\n[thresholds.segments.{orjson.dumps(segment).decode()}]\n"
        + "".join(f"{metric} = {threshold}\n" for metric, threshold in values.items())
        for segment, values in THRESHOLDS.items()
    )


@contextlib.contextmanager
def _workers(
    file: Path, folder: Path, environ: Mapping[str, str], addresses: Mapping[str, str]
) -> Iterator[dict[str, Worker]]:
    """Both workers, once they are ready."""
    workers: dict[str, Worker] = {}
    try:
        for name, subcommand in (("scorer", "score"), ("monitor", "monitor")):
            log = folder / f"{name}.log"
            with log.open("wb") as out:
                # A session of their own: Ctrl-C is for the demo, which then ends them in order.
                process = subprocess.Popen(
                    [sys.executable, "-m", "consumer", "--settings", str(file), subcommand],
                    stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=dict(environ),
                    start_new_session=True,
                )  # fmt: skip
            workers[name] = Worker(name, process, log, addresses[name])
        _wait_until_ready(workers)
        yield workers
    finally:
        _stop([worker.process for worker in workers.values()])


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask all at once, wait for all together, then insist."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_until_ready(workers: Mapping[str, Worker]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    waiting = list(workers.values())
    while waiting:
        for worker in workers.values():
            worker.check()
        if time.monotonic() > deadline:
            names = " and ".join(worker.name for worker in waiting)
            raise DemoError(f"{names} not ready after {READY_SECONDS:.0f} s; see the log")
        waiting = [worker for worker in waiting if not worker.ready()]
        time.sleep(0.2)
