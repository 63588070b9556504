"""Settings of what the monitor concludes from its windows: drift and changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from consumer.settings_section import Section


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
