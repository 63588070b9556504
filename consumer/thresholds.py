"""Thresholds in force for a segment: from the settings, from a baseline, or both, and then the settings win.

Weakest first: what ships with a model, the built-in default, the baseline (whole set, then ever more specific
segments), `thresholds.default`, `thresholds.segments`. A default of the settings is set for all segments, so it also
wins over a segment of the baseline.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from consumer.baselines import read_baseline
from consumer.settings import Settings
from consumer.settings_rules import segment_conditions
from consumer.settings_thresholds import Thresholds
from metrics.baseline import Baseline, BaselineError, specificity

log = logging.getLogger(__name__)

Layer = tuple[Mapping[str, str], Mapping[str, float]]
"""Label values that a segment must have, and thresholds by metric for it."""


class ThresholdTable:
    """Looks thresholds up by segment; built once at start."""

    def __init__(self, layers: Sequence[Layer], notes: Sequence[str] = ()) -> None:
        """`layers`: weakest first. `notes`: lines for the log that say what is in force and why."""
        self._layers = tuple(layers)
        self.notes = tuple(notes)

    def of(self, segment: Mapping[str, str]) -> dict[str, float]:
        """Threshold by metric name; a metric without one is not flagged."""
        found: dict[str, float] = {}
        for conditions, values in self._layers:
            if all(segment.get(name) == value for name, value in conditions.items()):
                found |= values
        return found


def thresholds_in_force(
    settings: Settings, definitions: Mapping[str, str], shipped: Mapping[str, float] | None = None
) -> ThresholdTable:
    """The table for scores of these `definitions` (by metric). `shipped`: thresholds that came with what scores.

    Raises:
        BaselineError: the baseline cannot be read; or it is of another definition, and settings do not say `unflagged`.
    """
    file = settings.baseline.file
    own = settings.thresholds
    if file is None:
        layers = [*_built_in(own, shipped), *_named(own)]
        return ThresholdTable(layers, tuple(_notes(layers, None, definitions)))
    baseline = read_baseline(file)
    others = _of_another_definition(baseline, definitions)
    if others and settings.baseline.on_mismatch == "refuse":
        raise BaselineError(f"{_mismatch(file, baseline, definitions, others)}; calibrate anew with these settings, or "
                            'go on without its thresholds: baseline.on_mismatch = "unflagged"')  # fmt: skip
    layers = [
        *_without(_built_in(own, shipped), others),
        *_of_baseline(baseline, definitions),
        *_named(own),
    ]
    notes = list(_notes(layers, file, definitions))
    if others:
        notes.insert(0, f"{_mismatch(file, baseline, definitions, others)}; it sets no threshold for them")
    strange = [key for key in baseline.segment_keys if key not in settings.segments.allow]
    if strange:
        notes.append(
            f"baseline {file}: it has segments by {', '.join(strange)}, which segments.allow does not name; "
            "its thresholds for them never apply"
        )
    return ThresholdTable(layers, notes)


def _built_in(own: Thresholds, shipped: Mapping[str, float] | None) -> list[Layer]:
    default: list[Layer] = [] if "default" in own.model_fields_set else [({}, own.default)]
    return [({}, shipped), *default] if shipped else default


def _named(own: Thresholds) -> list[Layer]:
    """What the settings themselves say; of two equally specific segments the one that stands later wins."""
    everywhere: list[Layer] = [({}, own.default)] if "default" in own.model_fields_set else []
    segments = [(segment_conditions(key), values) for key, values in own.segments.items()]
    return [*everywhere, *sorted(segments, key=lambda layer: len(layer[0]))]


def _of_baseline(baseline: Baseline, definitions: Mapping[str, str]) -> list[Layer]:
    usable = [t for t in baseline.thresholds if definitions.get(t.metric) == t.definition]
    usable.sort(key=lambda threshold: specificity(threshold.segment))
    return [(baseline.conditions(t.segment), {t.metric: t.value}) for t in usable]


def _of_another_definition(baseline: Baseline, definitions: Mapping[str, str]) -> list[str]:
    return [m for m, definition in definitions.items() if baseline.definitions.get(m, definition) != definition]


def _without(layers: Sequence[Layer], metrics: Sequence[str]) -> list[Layer]:
    return [(where, {m: value for m, value in values.items() if m not in metrics}) for where, values in layers]


def _mismatch(file: Path, baseline: Baseline, definitions: Mapping[str, str], others: Sequence[str]) -> str:
    listed = ", ".join(f"{m} ({baseline.definitions[m]}, here {definitions[m]})" for m in others)
    return f"baseline {file} is of other definitions: {listed}"


def _notes(layers: Sequence[Layer], file: Path | None, definitions: Mapping[str, str]) -> Iterator[str]:
    whole = {m: value for where, values in layers if not where for m, value in values.items()}
    somewhere = {m for _, values in layers for m in values}
    listed = [f"{m} {whole[m]:g}" if m in whole else f"{m} by segment" for m in definitions if m in somewhere]
    source = "" if file is None else f" (baseline {file})"
    yield f"thresholds{source}: {', '.join(listed) or 'none'}"
    silent = [m for m in definitions if m not in somewhere]
    if silent:
        yield (
            f"{', '.join(silent)}: no threshold, so measured but not flagged; take one from a validated set "
            "(groundwatch calibrate)"
        )
