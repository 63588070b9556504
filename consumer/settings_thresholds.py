"""Settings of what is flagged: thresholds of one's own, and the baseline file that may set the others."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from consumer.settings_rules import check_thresholds, segment_conditions
from consumer.settings_section import Section


class Thresholds(Section):
    """A score below its threshold (by more than 0.001) is flagged. Similarities have no default: what is low depends on
    the embedder and the domain, so take one from a baseline of your own."""

    default: dict[str, float] = Field(default_factory=lambda: {"faithfulness": 0.75})
    segments: dict[str, dict[str, float]] = Field(default_factory=dict)
    """`"app=hr-helpdesk,lang=zh" = {faithfulness = 0.6}`; the most specific match wins, metric by metric."""

    @field_validator("default")
    @classmethod
    def thresholds_can_be_met(cls, value: dict[str, float]) -> dict[str, float]:
        check_thresholds(value)
        return value

    @field_validator("segments")
    @classmethod
    def segments_are_conditions(cls, value: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for key, thresholds in value.items():
            segment_conditions(key)
            try:
                check_thresholds(thresholds)
            except ValueError as error:
                raise ValueError(f"{key!r}: {error}") from None
        return value


class Baseline(Section):
    """What `groundwatch calibrate` wrote: thresholds for what `[thresholds]` does not name, and what drift is from."""

    file: Path | None = None
    on_mismatch: Literal["refuse", "unflagged"] = "refuse"
    """A scorer whose scores are of another definition refuses to start, or flags nothing by those thresholds."""
