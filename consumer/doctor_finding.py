"""What a check of `groundwatch doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]
ANSWER_SECONDS = 2.0
"""For a service that is asked whether it is there."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it (empty where nothing is to be done)."""

    subject: str
    level: Level
    found: str
    advice: str = ""
