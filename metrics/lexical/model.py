"""The logistic model behind the lexical judge: named weights in weights.json, word frequencies in prior.json."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from metrics.lexical.answer import AnswerModel

WEIGHTS = "weights.json"
PRIOR = "prior.json"


class WeightsError(Exception):
    """The weight files are missing, damaged, or of another version of the features."""


@dataclass(frozen=True, slots=True)
class Model:
    """Log-odds of support are `intercept` + Σ weight · feature; 0 is the shipped threshold.

    `conflict` holds the weights of the second question, asked of what is not supported: contradicted or just not found?
    """

    weights: Mapping[str, float]
    intercept: float
    conflict: Mapping[str, float]
    conflict_intercept: float
    prior: Mapping[str, float]
    answer: AnswerModel | None
    """Of whole answers; None where none was fitted."""
    digest: str
    """8 hex digits of all of this: part of the judge's identity."""

    def support(self, features: Mapping[str, float]) -> float:
        """Log-odds that the contexts support the statement."""
        return self.intercept + sum(weight * features[name] for name, weight in self.weights.items())

    def contradiction(self, features: Mapping[str, float]) -> float:
        """Log-odds that an unsupported statement is contradicted."""
        return self.conflict_intercept + sum(weight * features[name] for name, weight in self.conflict.items())


def load_model(features_version: int) -> Model:
    """The shipped model.

    Raises:
        WeightsError: it cannot be used with this version of the features.
    """
    try:
        raw = files("metrics.lexical").joinpath(WEIGHTS).read_bytes()
        prior = files("metrics.lexical").joinpath(PRIOR).read_bytes()
        data = json.loads(raw)
        if data["features_version"] != features_version:
            raise WeightsError(
                f"{WEIGHTS} was fitted for features version {data['features_version']}, this code is version "
                f"{features_version}: run python -m metrics.lexical.fit"
            )
        model = Model(
            weights=_numbers(data["support"]["weights"]),
            intercept=float(data["support"]["intercept"]),
            conflict=_numbers(data["contradiction"]["weights"]),
            conflict_intercept=float(data["contradiction"]["intercept"]),
            prior=_numbers(json.loads(prior)["weights"]),
            answer=AnswerModel(**_numbers(data["answer"])),
            digest=hashlib.sha256(b"%d:" % len(raw) + raw + prior).hexdigest()[:8],
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{WEIGHTS} or {PRIOR} of metrics.lexical cannot be read ({error}); reinstall") from None
    return model


def _numbers(table: Mapping[str, object]) -> dict[str, float]:
    numbers = {name: float(str(value)) for name, value in table.items()}
    if not all(math.isfinite(value) for value in numbers.values()):
        raise ValueError("a weight is not finite")
    return numbers
