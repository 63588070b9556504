"""The verifier at work: windows, weights, readings, joining, calibration, the judge. Networks are tiny ones."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.calibration import Curve, calibration_error, excess_error, fitted
from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Label, Statement
from metrics.lexical.corpus import Row as Labelled
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.reading import read as read_text
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored
from metrics.verifier import joined, weights_file
from metrics.verifier.features import features_of
from metrics.verifier.joined import Joined
from metrics.verifier.judge import LocalJudge, question_of
from metrics.verifier.loading import verifier_over
from metrics.verifier.network import initial, read
from metrics.verifier.packed import PackedNetwork
from metrics.verifier.packing import Row, pack
from metrics.verifier.reader import Held, Question, Reader, in_the_light_of
from metrics.verifier.scored import featured, opened
from metrics.verifier.windows import Narrowing, Placed, Window, chosen, windows_of
from tests.verifier_data import chinese_passage, passage, tiny_base, tiny_tokens

CURVE = Curve(1.0, 0.0, 0.0)
ONLY_NETWORK = Joined({"network": 1.0}, 0.0, {"versus": 1.0}, 0.0, None, CURVE, 0.5, "0")


def words_in(texts: Sequence[str]) -> list[int]:
    return [len(ids) for ids in tiny_tokens().cut(texts)]


@pytest.fixture(scope="module")
def reader() -> Reader:
    encoder, tensors = tiny_base()
    parameters = initial(tensors, encoder.network, 1)
    parameters["classes.weight"] *= 6.0  # opinions, so that the three classes all occur
    return Reader(PackedNetwork(verifier_over(encoder, parameters, "fp32"), tiny_tokens()))


@pytest.fixture(scope="module")
def judge(reader: Reader) -> LocalJudge:
    return LocalJudge(LexicalJudge(), reader, ONLY_NETWORK, "tiny")


def request(
    *statements: str, contexts: tuple[str, ...] = (passage(1), passage(2)), question: str | None = None
) -> JudgeRequest:
    return JudgeRequest(question, tuple(Statement(s, 0, len(s)) for s in statements), tuple(Chunk(c) for c in contexts))


# Windows


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(20, 60))
def test_every_sentence_lies_in_a_window_that_fits(lengths: list[int], size: int) -> None:
    sentences = ["w" + " w" * (n - 1) + "." for n in lengths]
    text = " ".join(sentences)
    starts = list(itertools.accumulate([0, *(len(s) + 1 for s in sentences)]))
    spans = [(a, a + len(s)) for a, s in zip(starts, sentences, strict=False)]
    windows = windows_of(text, spans, words_in, size)
    covered = set()
    for w in windows:
        assert words_in([text[w.start : w.end]])[0] <= size
        covered |= set(range(w.start, w.end))
    assert all(set(range(a, b)) <= covered | {c for c in range(a, b) if text[c] == " "} for a, b in spans)
    assert len(windows) <= 2 * sum(lengths)


def test_neighbouring_windows_share_a_sentence() -> None:
    text = passage(1) + " " + passage(2)
    spans = [(s.start, s.end) for s in read_text(text).sentences]
    windows = windows_of(text, spans, words_in, 40)
    assert len(windows) > 2
    assert all(b.first == a.last - 1 for a, b in itertools.pairwise(windows))


def test_a_sentence_longer_than_the_network_is_read_to_its_end() -> None:
    text = "，".join(f"第{k}条规定甲方应当付款" for k in range(100)) + "。"
    windows = windows_of(text, [(0, len(text))], words_in, 50)
    assert "".join(text[w.start : w.end] for w in windows) == text


def test_few_windows_are_all_looked_at_and_of_many_the_best() -> None:
    rule = Narrowing()
    assert sorted(chosen([0.0] * rule.few)) == list(range(rule.few))
    covered = [0.0] * 20
    covered[13], covered[4], covered[7] = 0.9, 0.85, 0.3
    similar = np.zeros(20)
    similar[19] = 1.0
    picked = chosen(covered, similar)
    assert picked[:2] == [13, 4], "hardly behind the best"
    assert 7 not in picked
    assert 19 in picked, "near by its vector, though it shares no word"
    assert len(chosen([0.5] * 50)) == rule.by_words
    assert chosen([0.1, 0.9, 0.2, 0.3, 0.1], similar[:5]) == [1], "so few are chosen among by words alone"


# Weights


def test_weights_in_eight_bits_are_nearly_the_same_and_read_back_exactly_as_written(tmp_path: Path) -> None:
    encoder, tensors = tiny_base()
    parameters = initial(tensors, encoder.network, 1)
    checksum = weights_file.write(tmp_path / "w.safetensors", parameters, "abc")
    trained = weights_file.read(tmp_path / "w.safetensors", "abc")
    assert checksum.startswith(trained.digest)
    assert set(trained.parameters) == set(parameters)
    for name, tensor in parameters.items():
        assert torch.allclose(tensor, trained.parameters[name], atol=float(tensor.abs().max()) / 120), name
    weights_file.write(tmp_path / "again.safetensors", trained.parameters, "abc")
    again = weights_file.read(tmp_path / "again.safetensors").parameters
    assert all(torch.allclose(again[n], t, atol=1e-6) for n, t in trained.parameters.items())


def test_the_mean_of_networks_lies_between_them_and_of_one_is_that_one() -> None:
    _, tensors = tiny_base()
    one, other = (initial(tensors, tiny_base()[0].network, seed) for seed in (1, 2))
    between = weights_file.mean([one, other])
    assert between.keys() == one.keys()
    assert torch.allclose(between["classes.weight"], (one["classes.weight"] + other["classes.weight"]) / 2)
    assert all(torch.equal(tensor, one[name]) for name, tensor in weights_file.mean([one]).items())


def test_weights_of_another_base_or_damaged_are_refused(tmp_path: Path) -> None:
    encoder, tensors = tiny_base()
    path = tmp_path / "w.safetensors"
    weights_file.write(path, initial(tensors, encoder.network, 1), "abc")
    with pytest.raises(ModelError, match="belongs to revision abc"):
        weights_file.read(path, "other")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="cannot be read"):
        weights_file.read(path)


def test_weights_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not finite"):
        weights_file.write(tmp_path / "w", {"mix.bias": torch.tensor([float("nan")])}, "abc")


# Readings


def test_the_reader_gives_what_the_network_says_of_each_window(reader: Reader, judge: LocalJudge) -> None:
    """Narrowing, packing and batching change nothing: each reading is that of its window and statement alone."""
    asked = request("The library was opened by Martha Ilves.", "Lucas Amery sold it in 1951.", contexts=(passage(1),))
    seen: list[tuple[str, str, tuple[float, float, float]]] = []
    studied = judge.lexical.study(asked)
    (readings,) = reader.read([question_of(asked, studied)])
    for statement, held_of in zip(asked.statements, readings, strict=True):
        for held in held_of:
            text = studied.sources[held.placed.source][held.placed.window.start : held.placed.window.end]
            seen.append((text, statement.text, held.classes))
    for text, statement_text, classes in seen:
        network = reader.network
        assert isinstance(network, PackedNetwork)
        premise, own = network.tokens.cut([text, statement_text])
        with torch.no_grad():
            logits = read(network.verifier, pack([Row(premise, [own])], 0, 2)).classes
        assert classes == pytest.approx(torch.softmax(logits, 1)[0].tolist(), abs=1e-4)
    assert seen


def test_each_window_is_read_once_for_a_statement(reader: Reader, judge: LocalJudge) -> None:
    """Field case 41: a loop over windows that scores the whole text each time."""
    asked = request("Pieter Holm built it from 35 tons of stone.", contexts=tuple(passage(k) for k in range(30)))
    ((readings,),) = reader.read([question_of(asked, judge.lexical.study(asked))])
    places = [(held.placed.source, held.placed.window.start) for held in readings]
    assert len(set(places)) == len(places)
    assert 5 in {source for source, _ in places}, "the passage that says so is among those chosen"


def test_a_short_statement_is_read_with_its_question() -> None:
    assert in_the_light_of("Where is it?", "In Brennick.") == "Where is it? In Brennick."
    assert in_the_light_of("图书馆在哪里？", "海宁市") == "图书馆在哪里？ 海宁市"
    long = "The library was opened by Martha Ilves in the spring of that year."
    assert in_the_light_of("Where is it?", long) == long
    assert in_the_light_of(None, "In Brennick.") == "In Brennick."


# What joins


def held(supported: float, not_found: float, contradicted: float, coverage: float = 0.8) -> Held:
    placed = Placed(0, Window(0, 1, 0, 1), ())
    return Held(placed, coverage, (supported, not_found, contradicted), np.array([0.1, 0.9], np.float32))


def test_a_contradiction_counts_only_from_a_window_about_the_same_thing() -> None:
    about = features_of(0.0, False, [held(0.1, 0.1, 0.8), held(0.2, 0.7, 0.1)])
    elsewhere = features_of(0.0, False, [held(0.1, 0.1, 0.8, coverage=0.05), held(0.2, 0.7, 0.1)])
    assert about["refuted"] > 1.0
    assert elsewhere["refuted"] < 0.0
    assert about["network"] == elsewhere["network"] == pytest.approx(math.log(0.2 / 0.8))


def test_a_conflict_that_words_and_network_both_see_decides() -> None:
    model = replace(ONLY_NETWORK, decides_from=0.25)
    assert model.conflict_seen(features_of(2.0, True, [held(0.6, 0.1, 0.3)]))
    assert not model.conflict_seen(features_of(2.0, False, [held(0.6, 0.1, 0.3)])), "words see none"
    assert not model.conflict_seen(features_of(2.0, True, [held(0.8, 0.1, 0.1)])), "the network sees none"
    assert not model.conflict_seen(features_of(2.0, True, [held(0.6, 0.1, 0.3, coverage=0.1)])), "about something else"
    assert not ONLY_NETWORK.conflict_seen(features_of(2.0, True, [held(0.6, 0.1, 0.3)])), "words do not weigh in"


def test_no_window_at_all_gives_finite_features() -> None:
    assert all(math.isfinite(v) for v in features_of(1e9, True, []).values())


def test_the_joining_model_reads_back_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "joined.json"
    model = replace(
        ONLY_NETWORK, weights={"words": 0.5, "network": 0.25}, decides_from=0.3, answer=Curve(0.7, -0.1, 0.2)
    )
    path.write_text(joined.content_of(model, Curve(0.7, -0.1, 0.2), {"command": "c"}))
    again = joined.read(path)
    assert replace(again, digest="0") == model
    for change, says in (
        ({"features_version": 99}, "fitted for features version 99"),
        ({"support": {"weights": {"luck": 1}, "intercept": 0}}, "cannot be read"),
        ({"support": {"weights": {"words": float("nan")}, "intercept": 0}}, "cannot be read"),
    ):
        path.write_text(json.dumps(json.loads(joined.content_of(model, CURVE, {})) | change))
        with pytest.raises(ModelError, match=says):
            joined.read(path)


# Calibration


def test_a_perfectly_calibrated_model_has_no_error_above_chance_and_a_boastful_one_has() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(400)
    labels = (rng.random(400) < p).astype(np.int64)
    assert abs(excess_error(p, labels)) < 0.03
    boastful = np.clip(p * 1.6 - 0.3, 0.01, 0.99)
    assert excess_error(boastful, labels) > 0.04
    assert calibration_error(p, labels) > excess_error(p, labels)


def test_the_curve_finds_the_odds_that_answers_were_drawn_with() -> None:
    rng = np.random.default_rng(4)
    odds, counts = rng.normal(0, 2, 5000), rng.integers(1, 12, 5000)
    true = Curve(0.6, 0.3, -0.4)
    labels = np.array([rng.random() < true.probability(x, n) for x, n in zip(odds, counts, strict=True)]).astype(
        np.int64
    )
    found = fitted(odds, counts, labels, np.ones(5000))
    for x, n in ((-2.0, 1), (0.0, 3), (2.5, 10)):
        assert found.probability(x, n) == pytest.approx(true.probability(x, n), abs=0.06)


def test_scores_that_run_against_the_labels_never_turn_the_curve_round() -> None:
    odds = np.array([3.0, 2.0, -2.0, -3.0] * 20)
    labels = np.array([0, 0, 1, 1] * 20)
    assert fitted(odds, np.ones(80, np.int64), labels, np.ones(80)).slope == 0.0


# The judge


def test_verdicts_follow_the_network_and_evidence_is_really_there(judge: LocalJudge) -> None:
    statements = [
        f"The {w} of Quarter {k} was opened by Martha Ilves." for k, w in enumerate(("bridge", "museum", "old"))
    ]
    statements += ["Nobody knows.", "Its roof was replaced after storm 2.", "不允许带狗上船。"]
    asked = request(*statements, contexts=(passage(1), passage(2), chinese_passage(3)))
    seen = set()
    for bias, conflict_bias in ((0.0, 0.0), (20.0, 0.0), (-20.0, 20.0), (-20.0, -20.0)):
        biased = replace(judge, joined=replace(ONLY_NETWORK, intercept=bias, conflict_intercept=conflict_bias))
        (judgement,) = biased.judge([asked])
        assert isinstance(judgement, Judgement)
        assert len(judgement.verdicts) == len(statements)
        for verdict in judgement.verdicts:
            seen.add(verdict.label)
            assert (verdict.label is Label.SUPPORTED) == (verdict.probability > 0.5)
            assert len(verdict.reason.splitlines()) == 1
            for evidence in verdict.evidence:
                assert evidence.chunk is not None
                assert asked.contexts[evidence.chunk].text[evidence.start : evidence.end] == evidence.quote != ""
    assert seen == set(Label)


def test_order_of_requests_is_kept_and_neighbours_change_nothing(judge: LocalJudge) -> None:
    asked = [
        request("Martha Ilves opened it."),
        request("It is closed.", contexts=(" ",)),
        request("In Brennick.", question="Where?"),
    ]
    together = judge.judge(asked)
    assert together[1] == Unscored(Reason.NO_CONTEXT)
    for one, alone in zip(together, [judge.judge([a])[0] for a in asked], strict=True):
        if isinstance(one, Judgement):
            assert isinstance(alone, Judgement)
            assert [v.label for v in one.verdicts] == [v.label for v in alone.verdicts]
            assert [v.probability for v in one.verdicts] == pytest.approx(
                [v.probability for v in alone.verdicts], abs=1e-4
            )


def test_what_the_user_said_earlier_is_evidence(judge: LocalJudge) -> None:
    asked = JudgeRequest(
        None, (Statement("The parcel went to Ostwick.", 0, 27),), (Chunk("."),), ("Send the parcel to Ostwick!",)
    )
    (judgement,) = judge.judge([asked])
    assert isinstance(judgement, Judgement)
    evidence = judgement.verdicts[0].evidence
    assert [e.chunk_id for e in evidence] == ["conversation[0]"]


def test_a_request_that_breaks_the_network_costs_the_others_nothing(judge: LocalJudge, reader: Reader) -> None:
    class Breaking(Reader):
        def read(self, questions: Sequence[Question]) -> list[list[list[Held]]]:
            if any("poison" in text for q in questions for text in q.texts):
                raise RuntimeError("broken")
            return super().read(questions)

    fragile = LocalJudge(judge.lexical, Breaking(reader.network), ONLY_NETWORK, "tiny")
    found = fragile.judge([request("It is open."), request("poison"), request("It is closed.")])
    assert found[1] == Unscored(Reason.JUDGE_ERROR)
    assert isinstance(found[0], Judgement)
    assert isinstance(found[2], Judgement)


def test_a_network_gone_mad_is_non_finite_never_a_number(reader: Reader, judge: LocalJudge) -> None:
    encoder, tensors = tiny_base()
    parameters = initial(tensors, encoder.network, 1)
    parameters["classes.bias"] = torch.full((3,), float("nan"))
    mad = LocalJudge(
        judge.lexical,
        Reader(PackedNetwork(verifier_over(encoder, parameters, "fp32"), tiny_tokens())),
        ONLY_NETWORK,
        "mad",
    )
    assert mad.judge([request("It is open.")]) == [Unscored(Reason.NON_FINITE)]


def test_unsupported_words_are_those_whose_tokens_are_marked(judge: LocalJudge) -> None:
    placed = Placed(0, Window(0, 1, 0, 1), ())

    def marks(*values: float) -> Held:
        return Held(placed, 1.0, (0.1, 0.8, 0.1), np.array(values, np.float32))

    assert judge.unsupported(None, "opened on 9 May by her", marks(0, 0, 0.9, 0.8, 0, 0)) == ["9 May"]
    assert judge.unsupported("When?", "on 9 May", marks(0, 0, 0.9, 0)) == ["9"]
    assert judge.unsupported(None, "海宁市", marks(0, 0.9, 0.9)) == ["宁市"]


def test_the_probability_of_a_whole_answer_is_the_curve_s(judge: LocalJudge) -> None:
    asked = request("Martha Ilves opened it.", "It is visited by nobody.")
    (judgement,) = judge.judge([asked])
    assert isinstance(judgement, Judgement)
    found = judge.faithful_probability(asked, judgement)
    assert isinstance(found, float)
    assert 0.0 <= found <= 1.0
    assert judge.faithful_probability(asked, Judgement(())) == Unscored(Reason.NO_CLAIMS)


def test_identity_tells_networks_and_joining_models_apart(judge: LocalJudge) -> None:
    others = [replace(judge, network="b"), replace(judge, joined=replace(ONLY_NETWORK, digest="1"))]
    assert len({judge.identity, *(o.identity for o in others)}) == 3


def test_features_are_kept_so_that_a_fit_can_go_on(judge: LocalJudge, reader: Reader, tmp_path: Path) -> None:
    rows = [
        Labelled(str(k), (passage(k),), f"It is open. {200 + 7 * k} people visit it.", k % 2, str(k)) for k in range(5)
    ]
    path = tmp_path / "features.jsonl"
    first = list(featured("s", rows, [judge.lexical], [reader], opened(path, "state")))
    with path.open("a") as file:
        file.write('["s/9", "sta')  # cut off by a kill

    class Never(Reader):
        def read(self, questions: Sequence[Question]) -> list[list[list[Held]]]:
            raise AssertionError("everything is known")

    again = list(featured("s", rows, [judge.lexical], [Never(reader.network)], opened(path, "state")))
    assert again == first
    assert all(len(features) == 2 for _, features in first)
    assert opened(path, "other").known == {}
