"""A real Prometheus and Alertmanager on free ports, and a receiver for what Alertmanager sends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from consumer.embedded import free_port


@dataclass(frozen=True)
class Server:
    """One running server; `log` is where it writes."""

    address: str
    log: Path

    def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of an API answer; the message where it is refused."""
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None

    def query(self, expr: str) -> list[tuple[Mapping[str, str], float]]:
        """An instant query: labels and value of each series."""
        found = self.ask("/api/v1/query", query=expr)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]


@contextlib.contextmanager
def _server(command: Sequence[str], address: str, log: Path, ready: str) -> Iterator[Server]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}{ready}", timeout=2) as answer:
                if answer.status == 200:
                    break
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.1)
        yield Server(address, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def prometheus(binary: str, folder: Path, config: Mapping[str, Any]) -> contextlib.AbstractContextManager[Server]:
    """Prometheus with this configuration; its data is in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage", "--log.level=warn",
    ]  # fmt: skip
    return _server(command, address, folder / "prometheus.log", "/-/ready")


def alertmanager(binary: str, folder: Path, config: Mapping[str, Any]) -> contextlib.AbstractContextManager[Server]:
    """One Alertmanager without cluster."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "alertmanager.yaml"
    file.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        binary, f"--config.file={file}", f"--storage.path={folder / 'data'}", f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]  # fmt: skip
    return _server(command, address, folder / "alertmanager.log", "/-/ready")


@dataclass(frozen=True)
class Told:
    """One alert in one notification; `at` is the time of arrival (monotonic seconds)."""

    at: float
    name: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass
class Receiver:
    """Everything that the webhook was told, in order."""

    url: str
    told: list[Told] = field(default_factory=list)

    def firing(self, since: float = 0.0) -> set[str]:
        """Names of all alerts told as firing since then."""
        return {one.name for one in self.told if one.status == "firing" and one.at >= since}

    def of(self, name: str, status: str, since: float = 0.0) -> list[Told]:
        return [one for one in self.told if (one.name, one.status) == (name, status) and one.at >= since]


@contextlib.contextmanager
def webhook() -> Iterator[Receiver]:
    """Listens for what Alertmanager posts."""
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for alert in body["alerts"]:
                receiver.told.append(
                    Told(
                        time.monotonic(),
                        alert["labels"]["alertname"],
                        alert["status"],
                        alert["labels"],
                        alert["annotations"],
                    )
                )
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
