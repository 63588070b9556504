"""Settings of what the monitor concludes from its windows: drift and changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from consumer.settings_rules import check_metric_names
from consumer.settings_section import Section
from metrics.ranges import SHARE, range_of


class Drift(Section):
    """Distances between the distributions of a window and of a reference."""

    windows: tuple[str, ...] = ()
    """Names of `monitor.windows`; none: all but the shortest."""
    minimum_samples: Annotated[float, Field(ge=10.0)] = 50.0
    """Effective samples below which, on either side, nothing is compared."""

    def of(self, windows: dict[str, float]) -> tuple[str, ...]:
        """The windows to compare, out of those that there are (name to seconds)."""
        shortest = min(windows.values())
        return self.windows or tuple(n for n, seconds in windows.items() if seconds > shortest) or tuple(windows)


class Changes(Section):
    """The detectors of changes of level."""

    false_alarm_days: Annotated[float, Field(gt=0.0)] = 30.0
    """Expected time between false alarms, of all metrics and segments together."""


class Labels(Section):
    """People's labels, and what they correct."""

    days: Annotated[float, Field(gt=0.0)] = 30.0
    """Labels of answers from so many days correct the live number."""
    metrics: tuple[str, ...] = ("faithfulness", "answer_relevance")
    """Whose rolling scores are corrected."""

    @field_validator("metrics")
    @classmethod
    def shares(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_metric_names(value)
        for name in value:
            if range_of(name) is not SHARE:
                raise ValueError(f"{name} is no share in [0, 1], so it says nothing about a share of good answers")
        return value
