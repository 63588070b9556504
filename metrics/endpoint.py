"""An OpenAI-compatible embeddings endpoint as an `Embedder`."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import httpx
import numpy as np

from metrics.blank import is_blank
from metrics.embedding import Count, uncounted
from metrics.metric import Text, Vector
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored
from metrics.windows_of_tokens import MOST_WINDOWS, pooled, spread, windows

log = logging.getLogger(__name__)

RULE = "characters/2"
ATTEMPTS = 3
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class EndpointError(Exception):
    """The endpoint gave no usable answer. `refused`: it never will for these texts."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class RetryBudget:
    """Retries may be a fifth of all requests (and ten at the start): a failing server must not get thrice the load.

    Safe for threads.
    """

    def __init__(self, share: float = 0.2, most: float = 10.0) -> None:
        self._share, self._most, self._left = share, most, most
        self._lock = threading.Lock()

    def request(self) -> None:
        with self._lock:
            self._left = min(self._most, self._left + self._share)

    def retry(self) -> bool:
        """True: one more may be made, and is taken off."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """Vectors from `POST {base}/embeddings`. No prefixes: the endpoint's model is taken as it is.

    How many tokens the server's model takes is not known here, so long texts are cut into windows of
    `window_characters` (a tenth shared by neighbours); the vector is their mean weighted by characters, at unit length.
    Of more than `MOST_WINDOWS`, so many are asked for, from the beginning to the end.
    A call gives up after `timeout_seconds`, retries included; what it was for is `unscored(embedder_error)`.
    """

    client: httpx.Client
    model: str
    revision: str
    """Whatever tells one version of the server's model from the next; the server itself does not say."""
    dimension: int
    timeout_seconds: float
    window_characters: int
    batch_size: int
    count: Count = uncounted
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    budget: RetryBudget = field(default_factory=RetryBudget)

    @property
    def identity(self) -> str:
        where = f"{self.client.base_url}{self.model}@{self.revision}"
        return f"endpoint:{where} dim={self.dimension} window={self.window_characters} {RULE}"

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        results: list[Vector | Unscored] = [Unscored(Reason.EMPTY_TEXT)] * len(texts)
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        for i, text in enumerate(texts):
            if not is_blank(text.content):
                clean = text.content.encode("utf-8", "replace").decode()
                cut = windows(len(clean), self.window_characters, self.window_characters // 10)
                self.count("spread", int(len(cut) > MOST_WINDOWS))
                cut = spread(cut)
                parts += [clean[start:end] for start, end in cut]
                spans.append((i, len(cut)))
        vectors = self._all(parts)
        at = 0
        for i, number in spans:
            own = vectors[at : at + number]
            results[i] = self._one([v for v in own if v is not None], parts[at : at + number])
            at += number
        split = sum(number > 1 for _, number in spans)
        self.count("split", split)
        self.count("whole", len(spans) - split)
        self.count("blank", len(texts) - len(spans))
        return results

    def _one(self, vectors: list[Vector], parts: list[str]) -> Vector | Unscored:
        if len(vectors) < len(parts):
            return Unscored(Reason.EMBEDDER_ERROR)
        vector = pooled(np.stack(vectors), [len(part) for part in parts])
        if not np.isfinite(vector).all():
            self.count("non_finite", 1)
            return Unscored(Reason.NON_FINITE)
        return vector

    def _all(self, parts: list[str]) -> list[Vector | None]:
        deadline = self.now() + self.timeout_seconds
        found: list[Vector | None] = []
        for start in range(0, len(parts), self.batch_size):
            found += self._batch(parts[start : start + self.batch_size], deadline)
        return found

    def _batch(self, parts: list[str], deadline: float) -> list[Vector | None]:
        try:
            return [*request_vectors(self, parts, deadline)]
        except EndpointError as error:
            if error.refused and len(parts) > 1:
                # One text that the server refuses must not cost the others their score.
                middle = len(parts) // 2
                return self._batch(parts[:middle], deadline) + self._batch(parts[middle:], deadline)
            log.warning("embeddings endpoint: %s", error)
            return [None] * len(parts)


def request_vectors(embedder: EndpointEmbedder, parts: list[str], deadline: float) -> list[Vector]:
    """Unit vectors of `parts`, in order, with retries until `deadline` (of `embedder.now`).

    Raises:
        EndpointError: no usable answer in time.
    """
    embedder.budget.request()
    for attempt in range(1, ATTEMPTS + 1):
        left = deadline - embedder.now()
        if left <= 0:
            raise EndpointError(f"no answer within {embedder.timeout_seconds:g} s")
        wait = min(2.0, 0.2 * 2**attempt) * random.uniform(0.5, 1.0)
        try:
            response = embedder.client.post(
                "embeddings",
                json={"model": embedder.model, "input": parts, "encoding_format": "float"},
                timeout=httpx.Timeout(left, connect=min(left, 5.0)),
            )
        except httpx.HTTPError as error:
            fault = EndpointError(f"{type(error).__name__}: {error}")
        else:
            if response.status_code == 200:
                return _parsed(response, len(parts), embedder.dimension)
            said = f"HTTP {response.status_code}: {response.text[:200]}"
            if response.status_code not in RETRYABLE:
                raise EndpointError(said, refused=response.status_code in (400, 413, 422))
            fault = EndpointError(said)
            after = response.headers.get("retry-after", "")
            wait = max(wait, float(after)) if after.isdigit() else wait
        if attempt == ATTEMPTS or embedder.now() + wait >= deadline or not embedder.budget.retry():
            raise fault
        embedder.sleep(wait)
    raise AssertionError("unreachable")


def _parsed(response: httpx.Response, number: int, dimension: int) -> list[Vector]:
    """`dimension` 0 accepts any. A vector that is not finite stays what it is: it is not a fault of the transport."""
    try:
        rows = sorted(response.json()["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] != list(range(number)):
            raise EndpointError(f"{len(rows)} vectors for {number} texts")
        vectors = [np.asarray(row["embedding"], np.float64) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise EndpointError(f"the answer is not that of an embeddings endpoint: {error!r}") from None
    for vector in vectors:
        if vector.ndim != 1 or not len(vector) or (dimension and len(vector) != dimension):
            raise EndpointError(f"a vector of shape {vector.shape}, not ({dimension},): is it another model now?")
    with np.errstate(invalid="ignore", divide="ignore"):
        # By the largest value first: the squares of huge ones would overflow, and leave a vector of zeros.
        scaled = [vector / np.abs(vector).max() for vector in vectors]
        return [np.asarray(vector / np.linalg.norm(vector), np.float32) for vector in scaled]


def connect(
    base_url: str,
    model: str,
    key: str,
    *,
    revision: str = "",
    timeout_seconds: float = 20.0,
    window_characters: int = 4000,
    batch_size: int = 32,
    count: Count = uncounted,
) -> EndpointEmbedder:
    """Ask once for a vector, to learn the dimension.

    Raises:
        ModelError: no such endpoint, or no usable answer.
    """
    if not base_url or not model:
        raise ModelError("embedding.model 'openai' needs embedding.endpoint (a base URL) and embedding.endpoint_model")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        client = httpx.Client(base_url=base_url.rstrip("/") + "/", headers=headers, follow_redirects=False)
    except (httpx.InvalidURL, ValueError) as error:
        raise ModelError(f"embedding.endpoint {base_url!r} is not a URL: {error}") from None
    embedder = EndpointEmbedder(client, model, revision, 0, timeout_seconds, window_characters, batch_size, count)
    try:
        (vector,) = request_vectors(embedder, ["groundwatch"], embedder.now() + timeout_seconds)
    except EndpointError as error:
        raise ModelError(f"the embeddings endpoint {base_url} with model {model!r} does not answer: {error}") from None
    if not np.isfinite(vector).all():
        raise ModelError(f"the embeddings endpoint {base_url} answers with numbers that are not finite")
    return replace(embedder, dimension=len(vector))
