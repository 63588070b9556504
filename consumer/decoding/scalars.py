"""Times, ids, numbers, feedback and labels, as the field logs them: one reader for each. Units: docs/events.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from consumer.decoding.reasons import Repair
from consumer.event_ids import MAX_ID, long_id

EARLIEST = 1_000_000_000.0
LATEST = 4_100_000_000.0
"""Times outside 2001-09-09 .. 2099-12-03 are absurd; so a number's unit follows from its range."""
MAX_LABELS = 64
MAX_LABEL_NAME = 128
MAX_LABEL = 1024

_LIKED = {"like", "liked", "up", "thumbs_up", "thumbsup", "thumb_up", "positive", "good", "helpful", "yes", "useful",
          "upvote", "correct", "👍", "赞", "好评", "满意"}  # fmt: skip
_DISLIKED = {"dislike", "disliked", "down", "thumbs_down", "thumbsdown", "thumb_down", "negative", "bad", "unhelpful",
             "not_helpful", "no", "useless", "downvote", "incorrect", "wrong", "👎", "踩",
             "差评", "不满意"}  # fmt: skip
_NO_FEEDBACK = {"", "none", "null", "neutral", "n/a"}


def quantised(seconds: float) -> float:
    """`seconds` rounded to the microsecond that the native form can write."""
    return round(seconds * 1e6) / 1e6


def read_time(value: Any, repairs: list[str]) -> float | None:
    """Seconds since the epoch, or None with a repair noted. Seconds, milli-, micro- or nanoseconds are told apart by
    range; a time without a zone is UTC."""
    value = _extended(value)
    if isinstance(value, bool) or value is None:
        if value is not None:
            repairs.append(Repair.BAD_TIME)
        return None
    if isinstance(value, str):
        return _time_from_text(value.strip(), repairs)
    if isinstance(value, (int, float)):
        return _time_from_number(value, repairs)
    if isinstance(value, dict) and isinstance(value.get("seconds"), (int, str)):
        return read_time(value["seconds"], repairs)
    repairs.append(Repair.BAD_TIME)
    return None


def _time_from_number(value: float, repairs: list[str]) -> float | None:
    if math.isfinite(value):
        for unit in (1, 1_000, 1_000_000, 1_000_000_000):
            if EARLIEST <= value / unit < LATEST:
                return quantised(value / unit)
    repairs.append(Repair.AMBIGUOUS_TIME)
    return None


def _time_from_text(text: str, repairs: list[str]) -> float | None:
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        # Eight bare digits are an ISO date to Python; ten or more are a number of seconds.
        if not text.isdigit():
            return _in_range(when, repairs)
    try:
        return _time_from_number(float(text), repairs)
    except ValueError:
        pass
    try:
        return _in_range(datetime.fromisoformat(text.removesuffix("UTC").removesuffix("GMT").strip()), repairs)
    except ValueError:
        pass
    try:
        return _in_range(parsedate_to_datetime(text), repairs)
    except (ValueError, TypeError, IndexError, OverflowError):
        repairs.append(Repair.BAD_TIME)
        return None


def _in_range(when: datetime, repairs: list[str]) -> float | None:
    try:
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        seconds = math.inf
    if EARLIEST <= seconds < LATEST:
        return quantised(seconds)
    repairs.append(Repair.BAD_TIME)
    return None


def _extended(value: Any) -> Any:
    """The plain value of MongoDB's extended JSON: `{"$date": ...}`, `{"$oid": ...}`, `{"$numberLong": ...}`."""
    for _ in range(3):
        if not isinstance(value, dict) or len(value) != 1:
            break
        (name, inner), *_ = value.items()
        if name not in ("$date", "$oid", "$numberLong", "$numberInt", "$numberDouble", "$uuid"):
            break
        value = inner
    return value


def read_id(value: Any, repairs: list[str]) -> str | None:
    """An id as text; None where there is none. Null, blank, `0` and a boolean are what a producer writes for no id."""
    value = _extended(value)
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool) or (isinstance(value, (int, float)) and (value == 0 or not math.isfinite(value))):
        repairs.append(Repair.BAD_ID)
        return None
    elif isinstance(value, (int, float)):
        text = str(int(value)) if float(value).is_integer() else str(value)
    else:
        if value is not None:
            repairs.append(Repair.BAD_ID)
        return None
    if len(text) > MAX_ID:
        repairs.append(Repair.LONG_ID)
        return long_id(text)
    return text or None


def read_number(value: Any, repairs: list[str]) -> float | None:
    """A finite float, or None with a repair noted."""
    value = _extended(value)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            repairs.append(Repair.BAD_NUMBER)
            return None
        repairs.append(Repair.NUMBER_IN_TEXT if math.isfinite(number) else Repair.NON_FINITE_NUMBER)
        return number if math.isfinite(number) else None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return read_number(value[0].get("value"), repairs)
    repairs.append(Repair.BAD_NUMBER)
    return None


def read_feedback(value: Any, repairs: list[str]) -> float | None:
    """The user's rating as a number: -1 and 1 for words and thumbs, a number as it is logged."""
    for _ in range(3):
        if isinstance(value, list):
            value = value[-1] if value else None
        if not isinstance(value, dict):
            break
        value = next((value[k] for k in ("rating", "score", "value", "thumb", "type", "sentiment") if k in value), None)
    if value is None:
        return None
    if isinstance(value, bool):
        return 1.0 if value else -1.0
    if isinstance(value, str):
        word = value.strip().lower().replace("-", "_").replace(" ", "_")
        if word in _NO_FEEDBACK:
            return None
        if word in _LIKED or word in _DISLIKED:
            return 1.0 if word in _LIKED else -1.0
        try:
            number = float(word)
        except ValueError:
            repairs.append(Repair.BAD_FEEDBACK)
            return None
        return number if math.isfinite(number) else None
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    repairs.append(Repair.BAD_FEEDBACK)
    return None


def read_labels(value: Any, repairs: list[str]) -> dict[str, str]:
    """Labels as short texts: numbers and booleans become text; nested values, blank and overlong ones are left out."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        repairs.append(Repair.BAD_LABEL)
        return {}
    labels: dict[str, str] = {}
    for name, raw in value.items():
        if raw is None or raw == "":
            continue
        text = label_text(raw)
        if text is None or not name or len(name) > MAX_LABEL_NAME or len(labels) >= MAX_LABELS:
            repairs.append(Repair.BAD_LABEL)
        else:
            labels[name] = text
    return labels


def label_text(raw: Any) -> str | None:
    """A label's value as text of at most `MAX_LABEL` characters; None for what is no scalar."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, (int, float)):
        return str(raw)
    return raw if isinstance(raw, str) and len(raw) <= MAX_LABEL else None
