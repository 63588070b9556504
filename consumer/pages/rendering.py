"""From what a page shows to its HTML: templates, escaped throughout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consumer.case_parts import FAULTS, SIGNS, without_text
from consumer.contrast_words import subject, with_interval
from consumer.pages.addresses import Query, case_address, trace_address
from consumer.pages.texts import one_line, shown, window_title
from metrics.correction import MINIMUM
from metrics.flags import Fault, Flag
from metrics.judge import Label

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page loads."""

    body: bytes
    content_type: str


def files() -> dict[str, File]:
    """By name."""
    return {
        path.name: File(path.read_bytes(), TYPES[path.suffix])
        for path in sorted((FOLDER / "static").iterdir())
        if path.suffix in TYPES
    }


class Renderer:
    """Templates, read once, when the first page is asked for: a monitor whose pages nobody opens stays smaller."""

    def __init__(self, loaded: Mapping[str, File]) -> None:
        self._versions = {name: hashlib.sha256(file.body).hexdigest()[:12] for name, file in loaded.items()}

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        versions = self._versions
        environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.filters |= {
            "shown": shown, "line": one_line, "title": window_title,
            "words": words, "utc": utc, "machine": machine, "share": share,
            "case": case_address, "trace": trace_address, "subject": subject, "with_interval": with_interval,
        }  # fmt: skip
        environment.tests["without_text"] = without_text
        environment.globals |= {
            "SIGNS": SIGNS,
            "FAULTS": FAULTS,
            "flags": [flag.value for flag in Flag],
            "faults": [fault.value for fault in Fault],
            "verdicts": [label.value for label in Label],
            "no_query": Query(),
            "least_labels": MINIMUM,
            "file": lambda name: f"/static/{name}?{versions[name]}",
        }
        return environment

    def render(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(values)


def words(name: str) -> str:
    """A name of a closed list, as people write it."""
    return name.replace("_", " ")


def utc(seconds: float) -> str:
    """`2026-11-29 10:00:00`, in UTC; an absurd time is shown as a number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def machine(seconds: float) -> str:
    """For `<time datetime>`."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def share(value: float | None) -> str:
    """Percent, with a decimal where it is small."""
    if value is None:
        return "–"
    return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"
