"""The table of alerts (alerts.toml) together with the settings of the workers that they watch."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from consumer.settings import Settings
from metrics.label_names import label_name

TABLE = Path(__file__).with_name("alerts.toml")
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(?:\d+(?:d|h|m|s))+")
_FROM_SETTINGS = "settings:"
SEVERITIES = ("page", "ticket")
GUARDS = frozenset(("samples", "reference_samples", "events", "letters", "requests"))
"""Keys that say how much there must be before a share or a score means anything."""
_PLAIN = re.compile(r"""[^\s"'`\\{}$]+""")


class TableError(Exception):
    """The table cannot be used; the message says which alert and key, what was found and what is expected."""


def seconds_of(text: str) -> float:
    """
    >>> seconds_of("1h30m")
    5400.0
    """
    if not _SPAN.fullmatch(text):
        raise ValueError(f"{text!r} is no span of time; write 30s, 10m, 6h, 3d")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))


def span(seconds: float) -> str:
    """A range or offset as PromQL writes it, to the millisecond.

    >>> [span(s) for s in (5400.0, 259200.0, 7.5)]
    ['1h30m', '3d', '7s500ms']
    """
    rest = round(seconds * 1000)
    if rest <= 0:
        return "0s"
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, rest = divmod(rest, size)
        text += f"{number}{unit}" if number else ""
    return text


@dataclass(slots=True)
class Row:
    """One alert's part of the table. Whoever builds the alert asks for keys; what nobody asked for is an error."""

    name: str
    values: Mapping[str, Any]
    settings: Settings
    scale: float
    asked: set[str] = field(default_factory=set)

    def text(self, key: str) -> str:
        self.asked.add(key)
        value = self.values.get(key)
        if not isinstance(value, str):
            raise TableError(f"alerts.{self.name}.{key} is {value!r}; expected text")
        return value

    def number(self, key: str) -> float:
        """A number, or the one that the settings have."""
        self.asked.add(key)
        value = self.values.get(key)
        if isinstance(value, str) and value.startswith(_FROM_SETTINGS):
            value = self._setting(key, value.removeprefix(_FROM_SETTINGS))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TableError(f"alerts.{self.name}.{key} is {value!r}; expected a number, or 'settings:KEY'")
        least = 1 if key in GUARDS else 0
        if not least <= value < math.inf:
            raise TableError(f"alerts.{self.name}.{key} is {value!r}; expected a number of at least {least}")
        return float(value)

    def _setting(self, key: str, path: str) -> object:
        value: object = self.settings
        for step in path.split("."):
            if not hasattr(value, step):
                raise TableError(f"alerts.{self.name}.{key}: there is no setting {path!r}")
            value = getattr(value, step)
        return value

    def seconds(self, key: str) -> float:
        """A span of time, on the time scale of the rules; one from the settings is on the settings' own."""
        value = self.values.get(key)
        if isinstance(value, str) and value.startswith(_FROM_SETTINGS):
            return self.number(key)
        try:
            return seconds_of(self.text(key)) / self.scale
        except ValueError as error:
            raise TableError(f"alerts.{self.name}.{key}: {error}") from None

    def window(self, key: str = "window") -> str:
        """The name of a rolling window."""
        name = self.text(key)
        if name not in self.settings.monitor.windows:
            known = ", ".join(self.settings.monitor.windows)
            raise TableError(f"alerts.{self.name}.{key}: monitor.windows has no {name!r} (there are: {known})")
        return name

    def window_seconds(self, key: str = "window") -> float:
        return self.settings.monitor.windows[self.window(key)]

    @property
    def severity(self) -> str:
        severity = self.text("severity")
        if severity not in SEVERITIES:
            raise TableError(f"alerts.{self.name}.severity is {severity!r}; expected {' or '.join(SEVERITIES)}")
        return severity

    @property
    def hold_off(self) -> float:
        """Seconds that the condition holds before the alert fires."""
        return self.seconds("for") if "for" in self.values else 0.0

    def check_all_asked(self) -> None:
        unknown = self.values.keys() - self.asked - {"for", "severity"}
        if unknown:
            raise TableError(f"alerts.{self.name}: {', '.join(sorted(unknown))} means nothing there")


@dataclass(frozen=True, slots=True)
class Links:
    """Where people go from an alert; without a slash at the end."""

    grafana: str
    pages: str
    runbooks: str


@dataclass(frozen=True, slots=True)
class Table:
    """`scale` > 1 makes every span of the table shorter by that factor; windows are those of the settings."""

    links: Links
    scorer_job: str
    monitor_job: str
    scrape_interval: float
    interval: float
    hold: float
    target: float
    rows: Mapping[str, Mapping[str, Any]]
    settings: Settings
    scale: float
    handed_out: dict[str, Row] = field(default_factory=dict)

    @property
    def segments(self) -> tuple[str, ...]:
        """Label names of the segment."""
        return tuple(label_name(key) for key in self.settings.segments.allow)

    def row(self, name: str) -> Row:
        if name not in self.rows:
            raise TableError(f"the table has no [alerts.{name}]")
        return self.handed_out.setdefault(name, Row(name, self.rows[name], self.settings, self.scale))

    def linked(self, **links: str | None) -> Table:
        """With other links, where one is given."""
        given = {name: plain(f"links.{name}", value) for name, value in links.items() if value is not None}
        return replace(self, links=replace(self.links, **given))


def plain(key: str, text: str) -> str:
    """A link or a job name, without a slash at its end, that can stand in PromQL, in YAML and in an alert's template.

    Raises:
        TableError: it holds a quote, a brace, a backslash, a dollar or white space, or nothing.
    """
    if not _PLAIN.fullmatch(text):
        raise TableError(f"{key} is {text!r}; expected text without quotes, braces, backslashes, dollars and blanks")
    return text.rstrip("/")


def read_table(settings: Settings, file: Path = TABLE, scale: float = 1.0) -> Table:
    """The table under these settings.

    Raises:
        TableError: a key is missing or of the wrong kind.
        OSError: the file cannot be read.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
        links, scrape, rules = values["links"], values["scrape"], values["rules"]
        target = float(values["objective"]["target"])
        if not 0.5 <= target < 1.0:
            raise TableError(f"objective.target is {target}; expected a share from 0.5 to below 1")
        return Table(
            links=Links(
                **{name: plain(f"links.{name}", str(links[name])) for name in ("grafana", "pages", "runbooks")}
            ),
            scorer_job=plain("scrape.scorer_job", str(scrape["scorer_job"])),
            monitor_job=plain("scrape.monitor_job", str(scrape["monitor_job"])),
            scrape_interval=seconds_of(scrape["interval"]) / scale,
            interval=seconds_of(rules["interval"]) / scale,
            hold=seconds_of(rules["hold"]) / scale,
            target=target,
            rows=values["alerts"],
            settings=settings,
            scale=scale,
        )
    except KeyError as error:
        raise TableError(f"{file}: {error} is missing") from None
    except (ValueError, TypeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{file}: {error}") from None
