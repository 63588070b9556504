"""Real Prometheus tools: the current ones from the shared material, and whatever the machine has on its PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from tests.services import SHARED

UNPACK = SHARED / "prometheus" / "unpack"
ABSENT = "no Prometheus: ../shared/prometheus is absent and there is none on the PATH"


@lru_cache(maxsize=1)
def unpacked(folder: str) -> Path | None:
    """The folder that holds prometheus, promtool, alertmanager and amtool; None where the shared material is absent."""
    if not UNPACK.exists():
        return None
    subprocess.run([sys.executable, str(UNPACK), folder], check=True, stdout=subprocess.DEVNULL, timeout=120)
    return Path(folder)


def tools(name: str, folder: Path) -> list[str]:
    """Every `name` (prometheus, promtool, ...) there is, the current one first. `folder` is where to unpack it."""
    current = unpacked(str(folder))
    found = [str(current / name)] if current is not None and (current / name).exists() else []
    installed = shutil.which(name)
    return [*found, *([installed] if installed else [])]
