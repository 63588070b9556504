"""The small model that joins words and network: weights in joined.json beside the network's weights."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metrics.calibration import Curve
from metrics.model_files import ModelError
from metrics.verifier.features import CONFLICT_SIGNS, SIGNS, VERSION


@dataclass(frozen=True, slots=True)
class Joined:
    """Log-odds of support are `intercept` + Σ weight · feature; 0 is the shipped threshold of a statement.

    `conflict` tells contradicted from not found, of what is not supported. `decides_from`: the network's probability of
    contradiction from which a conflict that the words show too decides; None where words do not weigh in. `answer`: the
    curve of whole answers, None where none was fitted; `threshold`: the probability of faithfulness under which an
    answer is flagged.
    """

    weights: Mapping[str, float]
    intercept: float
    conflict: Mapping[str, float]
    conflict_intercept: float
    decides_from: float | None
    answer: Curve | None
    threshold: float
    digest: str
    """8 hex digits of all of this: part of the judge's identity."""

    def support(self, features: Mapping[str, float]) -> float:
        return self.intercept + sum(weight * features[name] for name, weight in self.weights.items())

    def conflict_seen(self, features: Mapping[str, float]) -> bool:
        """Whether words and network see a conflict with the evidence, each for itself: then that decides. It strikes
        28 % of the edited summaries of SummEdits, and 0 to 5 % of the faithful answers of the sets with hundreds."""
        return self.decides_from is not None and features["agreed"] >= self.decides_from

    def contradiction(self, features: Mapping[str, float]) -> float:
        return self.conflict_intercept + sum(weight * features[name] for name, weight in self.conflict.items())


def content_of(joined: Joined, curve: Curve, made: Mapping[str, object]) -> str:
    """The file's text, with the curve of whole answers. `made`: command, data and rows, for whoever reads it."""
    fields = {
        **made,
        "features_version": VERSION,
        "support": {"intercept": joined.intercept, "weights": joined.weights},
        "contradiction": {
            "intercept": joined.conflict_intercept,
            "weights": joined.conflict,
            "decides_from": joined.decides_from,
        },
        "answer": {"slope": curve.slope, "intercept": curve.intercept, "many": curve.many},
        "threshold": joined.threshold,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


def read(path: Path) -> Joined:
    """Raises:
    ModelError: absent, damaged, or fitted for other features.
    """
    try:
        raw = path.read_bytes()
        data = json.loads(raw)
        if data["features_version"] != VERSION:
            raise ModelError(
                f"{path} was fitted for features version {data['features_version']}, this code is version {VERSION}: "
                "run python -m metrics.verifier.fit"
            )
        joined = Joined(
            _numbers(data["support"]["weights"], SIGNS),
            float(data["support"]["intercept"]),
            _numbers(data["contradiction"]["weights"], CONFLICT_SIGNS),
            float(data["contradiction"]["intercept"]),
            float(data["contradiction"]["decides_from"]),
            Curve(float(data["answer"]["slope"]), float(data["answer"]["intercept"]), float(data["answer"]["many"])),
            float(data["threshold"]),
            hashlib.sha256(raw).hexdigest()[:8],
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error!r}); reinstall groundwatch") from None
    return joined


def _numbers(table: Mapping[str, object], known: Mapping[str, int]) -> dict[str, float]:
    numbers = {name: float(str(value)) for name, value in table.items()}
    if set(numbers) - set(known) or not all(math.isfinite(value) for value in numbers.values()):
        raise ValueError(f"weights must be finite and of {', '.join(known)}, not {numbers}")
    return numbers
