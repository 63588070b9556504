"""`judge.kind = "local"`: the shipped verifier, or an NLI model of the user's own. No model hub is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from consumer.judge_settings import Judge as JudgeSettings
from consumer.local_models import models_dir
from consumer.settings import Embedding
from metrics.embedding import LocalEmbedder
from metrics.embedding_precision import best_precision
from metrics.encoder import Encoder
from metrics.foreign_model import content_revision
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.model import WeightsError
from metrics.metric import Embedder, Text, Vector
from metrics.model_files import ModelError, read_manifest
from metrics.model_store import hub_model, ready_model
from metrics.outcome import Reason, Unscored
from metrics.packaged_model import NAME as BASE
from metrics.precision import chosen
from metrics.tokens import read_tokens
from metrics.verifier.foreign_nli import PLAIN, load_nli
from metrics.verifier.joined import Joined
from metrics.verifier.judge import LocalJudge
from metrics.verifier.precision import comparison
from metrics.verifier.reader import Embed, Opinions, Reader
from metrics.verifier.shipped import Base, Shipped, base_in, over, proven, read_shipped
from metrics.verifier.shipped_files import NAME

log = logging.getLogger(__name__)


def build_local(
    judge: JudgeSettings,
    embedding: Embedding,
    embedder: Embedder,
    model: Embedder | None,
    turned: Callable[[], None],
) -> LocalJudge:
    """The judge, proved by known pairs. torch must have been prepared (`consumer.local_models.prepare_torch`).

    Args:
        embedder: What vectors are asked of where long contexts are narrowed: the cached one.
        model: The model behind it, None where none is loaded. Where it is the verifier's own base, both share it; where
            it is no model in this process, contexts are narrowed by words alone: an endpoint costs, and may be away.
        turned: Called after every few answers.

    Raises:
        ModelError: it cannot be had, or does not judge known pairs as everybody would.
    """
    network, joined, name = _foreign(judge, embedding) if judge.local_model else _shipped(embedding, model)
    here = isinstance(model, LocalEmbedder)
    try:
        lexical = LexicalJudge()
    except WeightsError as error:
        raise ModelError(f"judge.kind {judge.kind}: {error}") from None
    return LocalJudge(
        lexical,
        Reader(network, embed=forgiving(embedder) if here else None),
        joined,
        name,
        narrowing=embedder.identity if here else "",
        turned=turned,
    )


def _shipped(embedding: Embedding, model: Embedder | None) -> tuple[Opinions, Joined, str]:
    shipped = read_shipped()
    base = _shared(model, shipped) or _own_base(embedding, shipped)
    folder = _base_folder(embedding, shipped)
    wanted = embedding.precision
    if wanted == "auto":
        made = comparison(partial(over, shipped.trained, base))
        wanted, trials = chosen(folder, f"verifier {shipped.trained.digest}", made)
        for trial in trials:
            log.info(
                "verifier in %s: %.2f s, probabilities within %.1e", trial.precision, trial.seconds, trial.difference
            )
    network, precision = proven(shipped.trained, base, wanted, lambda: base_in(folder, "fp32"))
    log.info(
        "verifier: %s over %s@%s, %s, known pairs right", shipped.sha256[:12], BASE, shipped.trained.base, precision
    )
    return network, shipped.joined, f"{NAME}@{shipped.trained.digest}"


def _shared(model: Embedder | None, shipped: Shipped) -> Base | None:
    """The embedder's own network where that is the base: one word table in memory."""
    if not isinstance(model, LocalEmbedder) or not isinstance(model.network, Encoder):
        return None
    same = model.model == BASE and model.revision == shipped.trained.base
    return Base(model.network, model.tokens) if same else None


def _own_base(embedding: Embedding, shipped: Shipped) -> Base:
    folder = _base_folder(embedding, shipped)
    precision = embedding.precision
    return base_in(folder, best_precision(folder, read_tokens(folder))[0] if precision == "auto" else precision)


def _base_folder(embedding: Embedding, shipped: Shipped) -> Path:
    return ready_model(models_dir(embedding), BASE, shipped.trained.base)


def _foreign(judge: JudgeSettings, embedding: Embedding) -> tuple[Opinions, Joined, str]:
    folder, name, revision = foreign_folder(judge, embedding)
    network = load_nli(folder, name)
    log.info("verifier: %s@%s, fp32, classes %s, known pairs right", name, revision[:12], ", ".join(network.order))
    return network, PLAIN, f"{name}@{revision[:12]}"


def foreign_folder(judge: JudgeSettings, embedding: Embedding) -> tuple[Path, str, str]:
    """Folder, name and whole revision of `judge.local_model`.

    Raises:
        ModelError: not prepared, or another revision than `judge.local_revision`.
    """
    path = Path(judge.local_model).expanduser()
    if path.is_dir():
        revision = content_revision(path)
        if not revision.startswith(judge.local_revision):
            raise ModelError(f"{path} has revision {revision[:12]}, but judge.local_revision is {judge.local_revision}")
        return path, path.name, revision
    folder = hub_model(models_dir(embedding), judge.local_model, judge.local_revision, "judge.local_revision")
    return folder, judge.local_model, read_manifest(folder).revision


def forgiving(embedder: Embedder) -> Embed:
    """What fails costs no answer: words alone narrow then."""

    def embed(texts: Sequence[Text]) -> Sequence[Vector | Unscored]:
        try:
            return embedder.embed(texts)
        except Exception as error:
            log.warning(
                "embedding windows of long contexts failed, words alone narrow them: %r",
                error,
                exc_info=log.isEnabledFor(logging.DEBUG),
            )
            return [Unscored(Reason.EMBEDDER_ERROR)] * len(texts)

    return embed
