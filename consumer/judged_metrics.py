"""Which metrics the judge of the settings scores, and which it cannot."""

from __future__ import annotations

from collections.abc import Collection

from consumer.judge_settings import Judge
from metrics.llm.names import FAITHFULNESS
from metrics.llm.names import METRICS as LLM_METRICS
from metrics.ranges import EXPECTED_FAITHFULNESS, FAITHFUL_PROBABILITY

JUDGED = (*LLM_METRICS, FAITHFUL_PROBABILITY, EXPECTED_FAITHFULNESS)
"""What some judge scores; the rest is the embedder's."""
CALIBRATED = (FAITHFULNESS, FAITHFUL_PROBABILITY)
"""What a judge that ships with its weights scores: both or neither, as one is made of the other's verdicts."""
OF_PROBABILITIES = (FAITHFUL_PROBABILITY, EXPECTED_FAITHFULNESS)
"""What no judge scores whose probabilities were not calibrated."""


def scored(named: Collection[str], judge: Judge) -> tuple[str, ...]:
    """All metrics that are scored where `named` stand in `scoring.metrics`.

    >>> scored(["faithfulness"], Judge(kind="local"))
    ('faithfulness', 'faithful_probability')
    """
    beside = CALIBRATED if _calibrated(judge) and wants_verdicts(named) else ()
    return tuple(dict.fromkeys((*named, *beside)))


def wants_verdicts(named: Collection[str]) -> bool:
    return bool(set(named) & {FAITHFULNESS, *OF_PROBABILITIES})


def beyond(named: Collection[str], judge: Judge) -> str:
    """What is named but not scored by this judge, and what to do: a line; empty where there is nothing.

    >>> beyond(["faithfulness", "answer_relevance"], Judge())
    "answer_relevance: only an LLM judge scores that; set judge.kind = 'llm', or leave it out"
    """
    found = []
    remote = [n for n in named if n in LLM_METRICS and n != FAITHFULNESS] if judge.kind != "llm" else []
    if remote:
        found.append(f"{', '.join(remote)}: only an LLM judge scores that; set judge.kind = 'llm', or leave it out")
    uncalibrated = [n for n in named if n in OF_PROBABILITIES] if not _calibrated(judge) else []
    if uncalibrated:
        scorers = "only the judges that ship with Groundwatch score that"
        advice = "leave judge.local_model empty" if judge.kind == "local" else "set judge.kind = 'lexical' or 'local'"
        found.append(f"{', '.join(uncalibrated)}: {scorers}; {advice}, or leave it out")
    return "; ".join(found)


def _calibrated(judge: Judge) -> bool:
    """A model of the user's own has not been calibrated on anything."""
    return judge.kind == "lexical" or (judge.kind == "local" and not judge.local_model)
