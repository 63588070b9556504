"""What an LLM judge can score."""

from __future__ import annotations

FAITHFULNESS, ANSWER_RELEVANCE = "faithfulness", "answer_relevance"
CONTEXT_PRECISION, CONTEXT_RECALL, CONTEXT_RELEVANCE = "context_precision", "context_recall", "context_relevance"
METRICS = (FAITHFULNESS, ANSWER_RELEVANCE, CONTEXT_PRECISION, CONTEXT_RECALL, CONTEXT_RELEVANCE)
"""Precision and recall come together or not at all."""
