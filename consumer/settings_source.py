"""Where settings come from: defaults, then one TOML file, then `GROUNDWATCH__SECTION__KEY` in the environment."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, SecretStr, ValidationError

from consumer.settings import Settings

PREFIX = "GROUNDWATCH__"
DEFAULT_FILE = Path("groundwatch.toml")


class SettingsError(Exception):
    """The settings cannot be used; the message says which key, what was found and what is expected."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Validated settings and, for every dotted key that is not a default, where its value came from."""

    settings: Settings
    origin: Mapping[str, str]


def load(file: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Read and validate. `file` None takes ./groundwatch.toml where there is one.

    Raises:
        SettingsError: unreadable file, unknown key, or a value of the wrong kind.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if file is None and DEFAULT_FILE.is_file():
        file = DEFAULT_FILE
    if file is not None:
        values = _read(file)
        origin |= {key: str(file) for key, _ in _flatten(values)}
    for name, raw in sorted(environ.items()):
        if name.startswith(PREFIX):
            path = name.removeprefix(PREFIX).lower().split("__")
            _put(values, path, _parse(raw), name)
            origin[".".join(path)] = name
    try:
        return Loaded(Settings.model_validate(values), origin)
    except ValidationError as error:
        raise SettingsError(_explain(error, origin)) from None


def in_force(loaded: Loaded) -> Iterator[tuple[str, str, str]]:
    """(dotted key, value as text, origin) of every setting; secrets are shown as `***`."""
    for key, value in _flatten_model(loaded.settings):
        if isinstance(value, SecretStr):
            shown = "***" if value.get_secret_value() else '""'
        else:
            shown = orjson.dumps(value, default=str).decode()
        origin = loaded.origin.get(key) or next(
            (where for name, where in loaded.origin.items() if name.startswith(key + ".")), "default"
        )
        yield key, shown, origin


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"{file}: no such file; name the settings file with --settings") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from None


def _parse(raw: str) -> Any:
    """An environment value is JSON where it reads as JSON (numbers, lists, true), else text."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw


def _put(values: dict[str, Any], path: list[str], value: Any, name: str) -> None:
    node = values
    for step in path[:-1]:
        child = node.setdefault(step, {})
        if not isinstance(child, dict):
            raise SettingsError(f"{name}: '{step}' is a value, not a section")
        node = child
    # librdkafka's own property names are dotted; an environment name cannot be.
    key = path[-1].replace("_", ".") if path[:-1] in (["kafka", "consumer"], ["kafka", "producer"]) else path[-1]
    node[key] = value


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _flatten_model(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key in type(model).model_fields:
        value = getattr(model, key)
        if isinstance(value, BaseModel):
            yield from _flatten_model(value, f"{prefix}{key}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            yield prefix + key, [item.model_dump() for item in value]
        else:
            yield prefix + key, value


def _explain(error: ValidationError, origin: Mapping[str, str]) -> str:
    lines = []
    for fault in error.errors(include_url=False):
        path = [str(step) for step in fault["loc"]]
        key = ".".join(path)
        where = origin.get(key) or next((o for k, o in origin.items() if key and k.startswith(key)), "")
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            near = difflib.get_close_matches(path[-1], _names_at(path[:-1]), n=1, cutoff=0.4)
            message = "unknown setting" + (f"; did you mean '{'.'.join([*path[:-1], near[0]])}'?" if near else "")
        # Lists are tuples in here; whoever writes TOML or JSON knows lists only.
        message = message.replace("a valid tuple", "a list").replace("Tuple should", "List should")
        prefix = f"{key}: " if key else ""  # a fault between sections names its keys itself
        lines.append(prefix + message + (f" (from {where})" if where else ""))
    return "\n".join(lines)


def _names_at(path: list[str]) -> list[str]:
    model: Any = Settings
    for step in path:
        known = getattr(model, "model_fields", {}).get(step)
        if known is None:
            return []
        model = known.annotation
    return list(getattr(model, "model_fields", {}))
