"""Thresholds in force for a segment: the default, overlaid by every matching segment, the most specific last."""

from __future__ import annotations

from collections.abc import Mapping

from consumer.settings import Thresholds, segment_conditions


class ThresholdTable:
    """Looks thresholds up by segment; built once from settings."""

    def __init__(self, settings: Thresholds) -> None:
        self._default = dict(settings.default)
        self._segments = sorted(
            ((segment_conditions(key), values) for key, values in settings.segments.items()),
            key=lambda entry: len(entry[0]),
        )

    def of(self, segment: Mapping[str, str]) -> dict[str, float]:
        """Threshold by metric name. Of two equally specific segments the one that stands later in the file wins."""
        found = dict(self._default)
        for conditions, values in self._segments:
            if all(segment.get(name) == value for name, value in conditions.items()):
                found |= values
        return found
