"""The RAGAS metrics by a chat model (Es et al., arXiv:2309.15217): one event in, one outcome a metric out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from metrics.evaluation import RemoteResult
from metrics.event import Event
from metrics.llm.chat import Chat
from metrics.llm.prompts import PromptBook
from metrics.llm.verdict_cache import NoCache, VerdictCache
from metrics.metric import Text, Vector, definition
from metrics.outcome import Reason, Unscored

METRICS = ("faithfulness", "answer_relevance", "context_precision", "context_recall", "context_relevance")
"""What an LLM judge can score. Precision and recall come together or not at all."""
BOUNDS = (0.0, 1.0)

Embed = Callable[[Sequence[Text]], Sequence[Vector | Unscored]]
"""Texts to unit vectors, in order; safe to call from another thread than the scorer's inference thread."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an LLM judge works; all of it is part of the definitions."""

    metrics: tuple[str, ...] = ("faithfulness",)
    splitting: Literal["rules", "llm"] = "rules"
    """Who splits an answer into statements: the project's own rules, or the model (one call more)."""
    statements_per_call: int = 1
    passage_tokens: int = 3000
    """Most tokens of passages in one call, by estimate; what matters beyond it goes into further calls."""
    questions: int = 3
    """Questions made from an answer for answer relevance, 1 to 8."""


class LlmJudging:
    """Fulfils `metrics.evaluation.Remote`. Safe to use from several threads: it keeps nothing between calls."""

    def __init__(
        self,
        chat: Chat,
        embed: Embed,
        book: PromptBook,
        *,
        embedder_identity: str,
        cache: VerdictCache | None = None,
        options: Options = Options(),
    ) -> None:
        """`embedder_identity` is part of the definition of answer relevance, which is a cosine."""
        self._chat = chat
        self._embed = embed
        self._book = book
        self._cache = cache or NoCache()
        self._options = options
        self.identity = f"llm/{chat.model}/{book.version}"
        self.definitions: Mapping[str, str] = {m: definition(m, self.identity) for m in options.metrics}
        self.bounds: Mapping[str, tuple[float, float]] = dict.fromkeys(options.metrics, BOUNDS)

    def judge(self, event: Event, wanted: frozenset[str]) -> RemoteResult:
        """Outcomes of the metrics in `wanted`. Blocks for as long as the chat takes; never raises."""
        return RemoteResult({m: Unscored(Reason.NOT_CONFIGURED) for m in self._options.metrics if m in wanted})
