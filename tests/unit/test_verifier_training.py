"""Training of the verifier: edits, examples, packed rows, one step, interruption."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.verifier import checkpoints, edits, examples, sources
from metrics.verifier.checkpoints import CheckpointError
from metrics.verifier.edits import FALSE, TRUE, first_that_fits
from metrics.verifier.learning import loss
from metrics.verifier.made import MOST_CLAIMS, made_of
from metrics.verifier.materials import Material
from metrics.verifier.network import Reading, assemble, exact, initial, read
from metrics.verifier.packing import STATEMENT_AT, Row, pack
from metrics.verifier.sources import CONTRADICTED, NOT_FOUND, SUPPORTED, UNSUPPORTED, Claim, Passage
from metrics.verifier.tokenised import UNKNOWN, Labelled, lesson, steps, tokenised
from metrics.verifier.train import Base, Run, Stage, Trainer, run_stage
from tests.verifier_data import SHARED_SENTENCE, data_folder, passage, tiny_base, tiny_tokens

ENGLISH = "Martha Ilves opened 12 shops in Brennick in March 1987, but the largest one was not profitable."
CHINESE = "海宁市的12家商店周一开放，在云岭县有三家，其中最大的一家没有盈利，但是可以免费参观三天。"
PASSAGE = f"{ENGLISH} Pieter Holm bought 40 of them from Lucas Amery. {CHINESE} 《平原日报》在南川市。"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture
def base() -> Base:
    encoder, tensors = tiny_base()
    return Base(encoder, tiny_tokens(), tensors)


@pytest.mark.parametrize("sentence", [ENGLISH, CHINESE])
@pytest.mark.parametrize("edit", FALSE, ids=lambda edit: edit.__name__)
def test_a_false_edit_changes_what_its_spans_say(edit: edits.Edit, sentence: str) -> None:
    for seed in range(20):
        found = edit(sentence, PASSAGE, random.Random(seed))
        if edit is edits.other_count and sentence is ENGLISH:
            assert found is None
            return
        assert found is not None, f"{edit.__name__} has something to do in this sentence"
        assert found.text != sentence
        assert found.changed
        for start, end in found.changed:
            assert 0 <= start < end <= len(found.text)
        outside = found.text[: found.changed[0][0]]
        assert sentence.startswith(outside), "what comes before the first span is as it was"
        last = found.text[found.changed[-1][1] :]
        assert sentence.endswith(last), "what comes after the last span is as it was"


def test_true_edits_keep_numbers_and_names() -> None:
    number = edits.rewritten_number("The fee of 12,000 euros rose by 30%.", "", random.Random(1))
    assert number is not None
    assert number.text == "The fee of 12000 euros rose by 30%."
    assert edits.other_script("無法確定資料", "", random.Random(1)) == edits.Edited("无法确定资料")
    led = edits.led(CHINESE, "", random.Random(1))
    assert led is not None
    assert led.text.endswith(CHINESE)


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.integers(0, 5))
def test_no_text_breaks_an_edit(sentence: str, text: str, seed: int) -> None:
    for edit in (*FALSE, *TRUE, edits.added, edits.renaming(["Oslo"])):
        found = edit(sentence, text, random.Random(seed))
        if found is not None:
            assert all(0 <= a <= b <= len(found.text) for a, b in found.changed)


def test_an_edited_sentence_is_never_one_of_the_passage() -> None:
    text = "It costs 5 euros. It costs 6 euros. It costs 7 euros."
    for seed in range(200):
        found = first_that_fits(FALSE, "It costs 5 euros.", text, random.Random(seed))
        assert found is None or found.text not in text


def test_examples_are_the_same_for_the_same_seed_and_others_for_another(data: Path) -> None:
    one, same, other = (examples.stage(data, seed, 0.01) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_examples_have_every_label_in_both_languages_and_spans_that_fit(data: Path) -> None:
    passages = examples.stage(data, 1, 1.0)
    total: Counter[int] = sum(examples.balance(passages).values(), Counter())
    assert set(total) == {SUPPORTED, NOT_FOUND, CONTRADICTED, UNSUPPORTED}
    assert set(examples.balance(passages)) == set(examples.SHARES)
    for p in passages:
        assert 1 <= len(p.claims) <= MOST_CLAIMS
        for claim in p.claims:
            assert all(0 <= a < b <= len(claim.text) for a, b in claim.spans or ())
            if claim.label == SUPPORTED:
                assert not claim.spans


def test_a_sentence_cut_out_is_not_in_the_premise(data: Path) -> None:
    cut = [
        (p, c)
        for p in examples.stage(data, 3, 1.0)
        for c in p.claims
        if c.label == NOT_FOUND and c.spans == ((0, len(c.text)),)
    ]
    assert cut
    assert all(c.text not in p.text for p, c in cut)


def test_how_a_sentence_reads_does_not_tell_its_label() -> None:
    """Some edits are made to the passage: then what was true is contradicted, and the edited sentence is supported."""
    turned = made = 0
    for seed in range(200):
        material = Material(passage(seed), "s", "g", beside=(passage(seed + 500),))
        found = made_of(material, FALSE, random.Random(seed))
        assert found is not None
        for claim in found.claims:
            if claim.text in material.text and claim.text not in found.text:
                assert claim.label in (CONTRADICTED, NOT_FOUND), "the passage does not say so any more"
                turned += claim.label == CONTRADICTED
            if claim.text in found.text:
                assert claim.label == SUPPORTED
                made += claim.text not in material.text
    assert turned > 20
    assert made > 20


def test_denying_the_right_answer_is_wrong_and_denying_a_wrong_one_is_right() -> None:
    text = "王五在1987年创办了这所学校，李四后来接任。学校包括三个校区，学生可以免费住宿。每年夏天学校对外开放。"
    asked = (("这所学校的创办者是谁？", "王五", ("李四",)),)
    labels: dict[str, set[int]] = {}
    for seed in range(200):
        found = made_of(Material(text, "s", "g", asked=asked), FALSE, random.Random(seed))
        assert found is not None
        for claim in found.claims:
            labels.setdefault(claim.text, set()).add(claim.label)
    assert labels["这所学校的创办者不是王五。"] == {CONTRADICTED}
    assert labels["这所学校的创办者不是李四。"] == {SUPPORTED}


def test_two_sentences_joined_are_supported_only_where_both_are() -> None:
    joined = []
    for seed in range(200):
        material = Material(passage(seed), "s", "g", beside=(passage(seed + 500),))
        found = made_of(material, FALSE, random.Random(seed))
        assert found is not None
        for claim in found.claims:
            one, mark, other = claim.text.partition(", and ")
            if mark and f"{one}." in found.text:
                there = other.lower() in found.text.lower()
                assert (claim.label == SUPPORTED) == there, claim
                joined.append(there)
    assert True in joined
    assert False in joined


def test_nothing_that_shares_a_sentence_with_a_measured_set_is_trained_on(data: Path) -> None:
    assert any(SHARED_SENTENCE in p.text for p in sources.grouped_pairs(data, "nli_fever"))
    for back in (False, True):
        assert not any(SHARED_SENTENCE in p.text for p in examples.stage(data, 1, 5.0, kept_back=back))


def test_groups_kept_back_are_never_trained_on(data: Path) -> None:
    trained = {p.group for p in examples.stage(data, 1, 5.0)}
    kept = {p.group for p in examples.stage(data, 1, 5.0, kept_back=True)}
    assert trained
    assert kept
    assert not trained & kept


def test_token_labels_follow_the_spans() -> None:
    tokens = tiny_tokens()
    claims = (
        Claim("It was opened in 1987 by her", CONTRADICTED, ((17, 21),)),
        Claim("It was opened", SUPPORTED, ()),
        Claim("It was closed", UNSUPPORTED),
    )
    (row,) = tokenised([Passage("It was opened in 1950.", claims, "s", "g")], tokens)
    assert row.tokens == ((0, 0, 0, 0, 1, 0, 0), (0, 0, 0), (UNKNOWN,) * 3)
    taught = lesson([row], tokens)
    assert len(taught.tokens) == len(taught.batch.statement_tokens)
    assert taught.tokens.tolist()[:9] == [UNKNOWN, 0, 0, 0, 0, 1, 0, 0, UNKNOWN]


def test_attention_in_bfloat16_is_that_of_float32_rounded(base: Base) -> None:
    """Statements of any length in one batch, and scores beyond 60: the shipped network's reach 80."""
    parameters = initial(base.tensors, base.encoder.network, 1)
    for name in [name for name in parameters if name.endswith("qkv.weight")]:
        parameters[name] = parameters[name] * 12.0
    exactly, quickly = (
        assemble(base.encoder.network, base.encoder.weights, parameters, exact, attention)
        for attention in (torch.float32, torch.bfloat16)
    )
    rng = random.Random(5)
    rows = [
        Row([rng.randrange(3, 400) for _ in range(n)], [[7] * m for m in lengths])
        for n, lengths in ((90, (1, 40)), (3, (9,)))
    ]
    with torch.no_grad():
        ours, theirs = (read(verifier, pack(rows, 0, 2)).classes for verifier in (quickly, exactly))
    assert not torch.equal(ours, theirs)
    assert torch.allclose(ours, theirs, atol=0.02 * float(theirs.abs().max()))


def test_a_statement_is_read_as_if_it_stood_alone(base: Base) -> None:
    """Neither the other statements of its row nor the other rows of its batch change a reading."""
    verifier = assemble(
        base.encoder.network, base.encoder.weights, initial(base.tensors, base.encoder.network, 1), exact, torch.float32
    )
    rng = random.Random(4)

    def ids(n: int) -> list[int]:
        return [rng.randrange(3, 400) for _ in range(n)]

    rows = [Row(ids(n), [ids(m) for m in lengths]) for n, lengths in ((40, (5, 12, 1)), (7, (9,)), (300, (250, 3)))]
    with torch.no_grad():
        together = read(verifier, pack(rows, 0, 2))
        alone = [read(verifier, pack([Row(r.premise, [s])], 0, 2)) for r in rows for s in r.statements]
        other = read(verifier, pack([Row(ids(40), rows[0].statements)], 0, 2))
    assert torch.allclose(together.classes, torch.cat([a.classes for a in alone]), atol=1e-4)
    assert torch.allclose(together.tokens, torch.cat([a.tokens for a in alone]), atol=1e-4)
    assert not torch.allclose(together.classes[:3], other.classes, atol=1e-3), "the premise is read"


def test_statements_stand_at_the_same_positions_whatever_the_premise() -> None:
    batch = pack([Row([5] * 30, [[6], [7, 8]]), Row([5] * 3, [[6]])], 0, 2)
    begins = batch.statement_tokens[batch.first]
    assert batch.positions[begins].tolist() == [STATEMENT_AT] * 3
    assert batch.ids[begins].tolist() == [2] * 3


def test_only_unsupported_counts_the_sum_of_both_classes() -> None:
    tokens = tiny_tokens()
    rows = tokenised([Passage("a b", (Claim("c d", UNSUPPORTED),), "s", "g")], tokens)
    taught = lesson(rows, tokens)
    marks = torch.zeros(len(taught.tokens))
    either, _ = loss(Reading(torch.tensor([[0.0, 2.0, 2.0]]), marks), taught)
    one, _ = loss(Reading(torch.tensor([[0.0, 2.6931, -20.0]]), marks), taught)
    assert float(either) == pytest.approx(float(one), abs=1e-3)


def test_a_step_holds_no_more_than_its_budget_and_every_row_comes_once() -> None:
    rows = [Labelled(Row([1] * (k % 50), [[2] * (k % 7)]), (0,), ((0,) * (k % 7),), "s") for k in range(300)]
    order = steps(rows, 200, 3)
    assert sorted(i for step in order for i in step) == list(range(300))
    assert all(len(step) == 1 or sum(rows[i].row.length for i in step) <= 200 for step in order)
    assert order == steps(rows, 200, 3)


def run_of(data: Path, out: Path, stop_after: int = 10**6) -> Run:
    calls = iter(range(10**9))
    return Run(data, out, 7, 1e9, lambda: next(calls) >= stop_after, stages=(Stage(0.02, 3e-3), Stage(0.003, 1e-3)))


@pytest.mark.full
def test_interrupted_training_ends_where_uninterrupted_training_ends(data: Path, base: Base, tmp_path: Path) -> None:
    whole = run_stage(run_of(data, tmp_path / "a"), base, None)
    assert whole is not None
    first = run_of(data, tmp_path / "b", stop_after=2)
    assert run_stage(first, base, None) is None
    kept = checkpoints.latest(tmp_path / "b")
    assert kept is not None
    assert (kept.stage, kept.step) == (0, 3)
    resumed = run_stage(run_of(data, tmp_path / "b"), base, kept)
    assert resumed is not None
    assert (resumed.stage, resumed.step) == (1, 0)
    for name, tensor in whole.parameters.items():
        assert torch.equal(tensor, resumed.parameters[name]), name
    last = run_stage(run_of(data, tmp_path / "b"), base, resumed)
    assert last is not None
    assert last.stage == 2
    assert any(not torch.equal(last.parameters[n], resumed.parameters[n]) for n in last.parameters)
    assert (tmp_path / "b" / "stage-2.pt").is_file()


def test_a_checkpoint_of_other_data_is_refused(data: Path, base: Base, tmp_path: Path) -> None:
    assert run_stage(run_of(data, tmp_path, stop_after=1), base, None) is None
    kept = checkpoints.latest(tmp_path)
    assert kept is not None
    with pytest.raises(CheckpointError, match="other data, settings or code"):
        run_stage(replace(run_of(data, tmp_path), seed=8), base, kept)


def test_a_damaged_checkpoint_says_so(tmp_path: Path) -> None:
    (tmp_path / checkpoints.LATEST).write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="delete it"):
        checkpoints.latest(tmp_path)


def test_training_learns_what_only_the_premise_tells(base: Base) -> None:
    rng = random.Random(2)

    def batch() -> list[Labelled]:
        rows = []
        for k in range(16):
            premise = [(7, 9)[k % 2]] * 5
            label = SUPPORTED if k % 2 else NOT_FOUND
            rows.append(Labelled(Row(premise, [(rng.randrange(3, 400),)] * 2), (label,) * 2, ((UNKNOWN,),) * 2, "s"))
        return rows

    trainer = Trainer(base, Stage(1.0, 1e-2), initial(base.tensors, base.encoder.network, 1), 60)
    losses = [trainer.step(number, batch())[0] for number in range(60)]
    assert sum(losses[-10:]) / 10 < 0.5 * sum(losses[:3]) / 3
