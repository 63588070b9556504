"""What the local judge needs before it judges: its files, their checksum, the proof that it judges what it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.cli import group
from consumer.doctor import check_judge
from consumer.embedders import build_evaluator
from consumer.local_judges import forgiving
from consumer.settings import Settings
from metrics.calibration import Curve
from metrics.event import Chunk, Event
from metrics.faithful_probability import NAME as FAITHFUL_PROBABILITY
from metrics.judge import JudgeRequest, Label, Statement
from metrics.lexical.judge import LexicalJudge
from metrics.metric import Text, Vector
from metrics.model_files import ModelError
from metrics.outcome import Scored, Unscored
from metrics.verifier.features import VERSION
from metrics.verifier.joined import Joined, content_of
from metrics.verifier.judge import AT_ONCE, LocalJudge
from metrics.verifier.loading import verifier_over
from metrics.verifier.network import initial
from metrics.verifier.packed import PackedNetwork
from metrics.verifier.reader import Reader
from metrics.verifier.shipped import Base, proven
from metrics.verifier.shipped_files import JOINED, WEIGHTS, checked_files
from metrics.verifier.weights_file import Trained, write
from tests.unit.test_foreign_nli import trained_model
from tests.verifier_data import passage, tiny_base, tiny_tokens

CURVE = Curve(1.0, 0.0, 0.0)
PLAIN = Joined({"network": 1.0}, 0.0, {"versus": 1.0}, 0.0, 0.25, CURVE, 0.5, "0")


def files_in(folder: Path, base: str = "abc") -> Path:
    """Both files over an untrained network."""
    encoder, tensors = tiny_base()
    folder.mkdir(exist_ok=True)
    checksum = write(folder / WEIGHTS, initial(tensors, encoder.network, 1), base)
    (folder / JOINED).write_text(content_of(PLAIN, CURVE, {"network_sha256": checksum}))
    return folder


def test_files_that_belong_together_say_what_they_are(tmp_path: Path) -> None:
    files = checked_files(files_in(tmp_path))
    assert (files.base, len(files.sha256)) == ("abc", 64)


def test_the_same_weights_make_the_same_file(tmp_path: Path) -> None:
    encoder, tensors = tiny_base()
    parameters = initial(tensors, encoder.network, 1)
    assert len({write(tmp_path / f"{k}.safetensors", parameters, "abc") for k in range(8)}) == 1


def test_without_the_files_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not in this installation .*; set judge.kind = 'lexical' or 'llm', or name"):
        checked_files(tmp_path)
    files_in(tmp_path)
    (tmp_path / JOINED).unlink()
    with pytest.raises(ModelError, match=rf"\({JOINED} missing"):
        checked_files(tmp_path)


def test_a_changed_byte_a_strange_pair_and_no_json_are_found(tmp_path: Path) -> None:
    folder = files_in(tmp_path)
    sound = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"has SHA-256 .* but joined\.json was fitted for .*; reinstall"):
        checked_files(folder)
    (folder / WEIGHTS).write_bytes(sound)
    (folder / JOINED).write_text("[]")
    with pytest.raises(ModelError, match="cannot be read"):
        checked_files(folder)


def test_field_case_41_a_network_that_knows_nothing_is_refused_at_start() -> None:
    encoder, tensors = tiny_base()
    trained = Trained(initial(tensors, encoder.network, 1), "abc", "digest")
    base = Base(encoder, tiny_tokens())
    with pytest.raises(ModelError, match="does not judge known pairs as everybody would, so it is not used"):
        proven(trained, base, "bf16", lambda: base)


class Breaking:
    """An embedder that is away."""

    identity = "breaking/1"
    dimension = 4

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts: Sequence[Text]) -> list[Vector | Unscored]:
        self.asked += 1
        raise ConnectionError("away")


def untrained(**options: object) -> LocalJudge:
    encoder, tensors = tiny_base()
    network = PackedNetwork(verifier_over(encoder, initial(tensors, encoder.network, 1), "fp32"), tiny_tokens())
    return replace(LocalJudge(LexicalJudge(), Reader(network), PLAIN, "tiny"), **options)  # type: ignore[arg-type]


def asked(k: int) -> JudgeRequest:
    text = f"{200 + 7 * k} people visit it."
    return JudgeRequest(None, (Statement(text, 0, len(text)),), (Chunk(passage(k)),))


def test_an_embedder_that_is_away_costs_no_answer() -> None:
    away = Breaking()
    long = JudgeRequest(None, (Statement("417 people visit it.", 0, 20),), tuple(Chunk(passage(k)) for k in range(34)))
    network = untrained().reader.network
    narrowed = replace(untrained(), reader=Reader(network, embed=forgiving(away)))
    assert narrowed.judge([long]) == untrained().judge([long])
    assert away.asked == 1


def test_a_long_batch_shows_that_it_moves() -> None:
    beats: list[int] = []
    judge = untrained(turned=lambda: beats.append(1))
    found = judge.judge([asked(k) for k in range(2 * AT_ONCE + 1)])
    assert len(found) == 2 * AT_ONCE + 1
    assert len(beats) == 3
    assert found[-1] == untrained().judge([asked(2 * AT_ONCE)])[0]


def test_by_which_vectors_contexts_are_narrowed_is_part_of_the_identity() -> None:
    identities = {untrained(narrowing=by).identity for by in ("", "e5@1", "e5@2")}
    assert len(identities) == 3


# A model of the user's own: a real transformers classifier, tiny, that knows the known pairs by heart.


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_model(tmp_path_factory.mktemp("own-nli"), (Label.CONTRADICTED, Label.SUPPORTED, Label.NOT_FOUND))


def own(folder: object, **judge: str) -> Settings:
    return Settings.model_validate(
        {"judge": {"kind": "local", "local_model": str(folder), **judge}, "scoring": {"metrics": ["faithfulness"]}}
    )


def test_field_case_41_43_a_model_of_ones_own_judges_without_a_hub_and_without_a_probability(nli: Path) -> None:
    evaluator = build_evaluator(own(nli), None)
    event = Event("e", 0.0, None, (Chunk("Dogs are allowed on the ferry."),), "Dogs are not allowed on the ferry.")
    (found,) = evaluator.evaluate([event])
    assert found.outcomes == {"faithfulness": Scored(0.0)}
    assert found.judged is not None
    assert found.judged.verdicts[0].label is Label.CONTRADICTED
    assert evaluator.judge is not None
    assert evaluator.judge.identity.startswith(f"local/{VERSION}/{nli.name}@")
    assert evaluator.thresholds == {}


def test_field_case_43_a_name_is_never_fetched_and_another_revision_is_refused(nli: Path, tmp_path: Path) -> None:
    absent = own("some/nli-model").model_copy(
        update={"embedding": Settings().embedding.model_copy(update={"models_dir": tmp_path})}
    )
    with pytest.raises(ModelError, match="groundwatch models prepare some/nli-model"):
        build_evaluator(absent, None)
    with pytest.raises(ModelError, match=r"but judge\.local_revision is 0123"):
        build_evaluator(own(nli, local_revision="0123"), None)
    with pytest.raises(ValueError, match="only the judges that ship with Groundwatch score that"):
        build_evaluator(
            own(nli).model_copy(
                update={"scoring": Settings().scoring.model_copy(update={"metrics": (FAITHFUL_PROBABILITY,)})}
            ),
            None,
        )


def test_doctor_and_models_verify_prove_a_model_of_ones_own(nli: Path, tmp_path: Path) -> None:
    (sound,) = check_judge(own(nli))
    assert (sound.level, nli.name in sound.found) == ("ok", True), sound
    (broken,) = check_judge(own(tmp_path))
    assert broken.level == "fail"
    assert "no NLI model that transformers reads" in broken.found
    environ = {"GROUNDWATCH__JUDGE__KIND": "local", "GROUNDWATCH__JUDGE__LOCAL_MODEL": str(nli)}
    verified = CliRunner(env=environ).invoke(group, ["models", "verify", "verifier"])
    assert verified.exit_code == 0, verified.output
    assert f"known pairs passed: {nli.name}@" in verified.output
