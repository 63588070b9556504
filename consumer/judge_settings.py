"""The section `[judge]`: which judge, and how a remote one is called and what it may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from consumer.settings_section import PositiveSeconds, Section

Limit = Annotated[int, Field(ge=0)]
Price = Annotated[float, Field(ge=0.0)]
OURS = frozenset({"messages", "model", "user", "stream", "n", "response_format", "max_tokens", "max_completion_tokens"})
"""Fields of a request that `judge.extra` cannot change: verdicts are counted, cached and told apart by them."""


class Judge(Section):
    kind: Literal["lexical", "local", "llm", "none"] = "lexical"
    """`lexical` needs no model; `local` runs a verifier in the scorer; `llm` asks an OpenAI-compatible chat endpoint;
    `none` leaves faithfulness unscored(not_configured)."""
    local_model: str = ""
    """With `local`: an NLI cross-encoder by folder or by name on the model hub; empty: the verifier that ships."""
    local_revision: str = ""
    """Pins one of `local_model`: leading hex digits of its commit, of a folder of its content."""
    url: str = ""
    """Base URL, to which `/chat/completions` is added: http://localhost:8000/v1"""
    model: str = ""
    api_key: SecretStr = SecretStr("")
    api_key_file: Path | None = None
    timeout_seconds: PositiveSeconds = 60.0
    """For one answer: all calls, retries and waiting together. After it what is missing is unscored(judge_timeout)."""
    concurrency: Annotated[int, Field(ge=1, le=512)] = 4
    """Answers judged at once."""
    waiting: Annotated[int, Field(ge=0)] = 8
    """Answers that may wait for a free slot; further ones are unscored(judge_busy)."""
    structured: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    """How replies are held to JSON. `auto` begins with a schema and finds out, once, what the server takes."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Added to every request as it is."""
    split: Literal["rules", "llm"] = "rules"
    """Who splits an answer into statements."""
    statements_per_call: Annotated[int, Field(ge=1, le=50)] = 1
    cross_check: bool = True
    """Where model and rules disagree on a statement, ask once more, the other way round: two of three."""
    passage_tokens: Annotated[int, Field(ge=200)] = 3000
    """Most tokens of passages in one call; what matters beyond it goes into further calls."""
    questions: Annotated[int, Field(ge=1, le=8)] = 3
    """Questions generated back from an answer, for answer relevance."""
    prompts_dir: Path | None = None
    """Prompts of your own and adapted ones; they come before those that are shipped."""
    cache: bool = True
    """Verdicts are kept: in memory, and in `redis.cache_url` where there is one."""
    calls_per_minute: Limit = 0
    calls_per_day: Limit = 0
    tokens_per_minute: Limit = 0
    tokens_per_day: Limit = 0
    prompt_price: Price = 0.0
    """Of 1,000 prompt tokens, in any currency."""
    completion_price: Price = 0.0

    @field_validator("url")
    @classmethod
    def url_of_an_endpoint(cls, value: str) -> str:
        """A fault does not quote the value, which may hold a password."""
        if not value:
            return value
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("must read http://HOST:PORT/v1 or https://HOST/v1")
        return value.rstrip("/").removesuffix("/chat/completions")

    @field_validator("extra")
    @classmethod
    def extra_leaves_ours_alone(cls, value: dict[str, Any]) -> dict[str, Any]:
        found = sorted(OURS & value.keys())
        if found:
            raise ValueError(f"{', '.join(found)} cannot be set: Groundwatch sets it itself; take it out")
        return value

    @model_validator(mode="after")
    def llm_needs_an_endpoint(self) -> Judge:
        if self.kind == "llm" and not (self.url and self.model):
            raise ValueError("kind 'llm' needs judge.url (http://HOST:PORT/v1) and judge.model")
        if self.api_key.get_secret_value() and self.api_key_file is not None:
            raise ValueError("api_key and api_key_file are both set; give one")
        return self
