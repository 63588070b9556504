"""No container engine runs where these tests do: what can be known of the image without one is checked here."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from consumer.embedded import free_port
from consumer.health import HealthServer

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def last_stage() -> list[tuple[str, str]]:
    every = instructions()
    start = max(index for index, (name, _) in enumerate(every) if name == "FROM")
    return every[start:]


def test_every_instruction_is_known() -> None:
    known = {"FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in instructions()} <= known


def test_every_copied_file_is_there_and_not_ignored() -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    sources = [
        source
        for name, rest in instructions()
        if name == "COPY" and "--from=" not in rest
        for source in shlex.split(rest)[:-1]
    ]
    assert len(sources) >= 6
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source in allowed, f"{source} is kept out by .dockerignore"


def test_the_image_runs_as_nobody_in_particular_with_the_model_inside() -> None:
    users = [rest for name, rest in last_stage() if name == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    assert ("RUN", "groundwatch models prepare") in instructions()
    assert any("/opt/models" in rest and "--from=build" in rest for name, rest in last_stage() if name == "COPY")


def test_torch_is_the_release_that_set_up_installs() -> None:
    release = re.search(r"^TORCH=(\S+)$", (ROOT / "tools" / "setup").read_text(encoding="utf-8"), re.M)
    assert release
    assert f"torch=={release[1]}+cpu" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_health_check_is_the_script_on_both_ports() -> None:
    (check,) = [rest for name, rest in last_stage() if name == "HEALTHCHECK"]
    assert 'CMD ["python", "/opt/healthcheck.py", "9108", "9109"]' in check
    environment = " ".join(rest for name, rest in last_stage() if name == "ENV")
    assert "SCORER__LISTEN=0.0.0.0:9108" in environment
    assert "MONITOR__LISTEN=0.0.0.0:9109" in environment


def health_check(*ports: int) -> subprocess.CompletedProcess[str]:
    script = ROOT / "deploy" / "healthcheck.py"
    return subprocess.run([sys.executable, str(script), *map(str, ports)], capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(("healthy", "code"), [(True, 0), (False, 1)])
def test_the_health_check_asks_what_listens(healthy: bool, code: int) -> None:
    silent, port = free_port(), free_port()
    with HealthServer(
        f"127.0.0.1:{port}", CollectorRegistry(), healthy=lambda: (healthy, ""), ready=lambda: (True, "")
    ):
        assert health_check(silent, port).returncode == code


def test_the_health_check_fails_where_nothing_listens() -> None:
    said = health_check(free_port(), free_port())
    assert (said.returncode, said.stdout.strip()) == (1, "nothing listens")


def test_a_built_package_holds_every_data_file(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    packaged = [name for name in tracked if name.startswith(("consumer/", "metrics/")) and (ROOT / name).exists()]
    source = tmp_path / "source"
    for name in [*packaged, "pyproject.toml", "README.md", "LICENSE"]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(source)], check=True, timeout=120)
    (wheel,) = tmp_path.glob("groundwatch-*.whl")
    assert set(packaged) - set(zipfile.ZipFile(wheel).namelist()) == set()
