"""Foreign NLI models behind the local judge: real transformers models, tiny ones that know the known pairs by heart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest, Label, Statement
from metrics.lexical.judge import LexicalJudge
from metrics.model_files import ModelError
from metrics.outcome import Reason, Unscored
from metrics.verifier.foreign_nli import PLAIN, load_nli
from metrics.verifier.judge import LocalJudge
from metrics.verifier.label_order import PAIRS
from metrics.verifier.reader import Reader

NAMES = {Label.SUPPORTED: "entailment", Label.NOT_FOUND: "neutral", Label.CONTRADICTED: "contradiction"}


def trained_model(folder: Path, order: Sequence[Label]) -> Path:
    """A classifier whose outputs stand in `order`, taught the known English pairs until it knows them."""
    torch.manual_seed(1)
    pairs = [pair for pair in PAIRS if pair.language == "en"]
    bare = Tokenizer(WordLevel({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}, "[UNK]"))
    splitter = Whitespace()
    words = sorted({w for p in pairs for text in (p.premise, p.hypothesis) for w, _ in splitter.pre_tokenize_str(text)})
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3} | {w: 4 + k for k, w in enumerate(words)}
    bare = Tokenizer(WordLevel(vocabulary, "[UNK]"))
    bare.pre_tokenizer = splitter
    bare.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.2, id2label={k: NAMES[label] for k, label in enumerate(order)},
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    texts = tokenizer([p.premise for p in pairs], [p.hypothesis for p in pairs], padding=True, return_tensors="pt")
    labels = torch.tensor([list(order).index(p.label) for p in pairs])
    for _ in range(300):
        loss = model(**texts, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < 0.02:
            break
    assert loss.item() < 0.1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_model(tmp_path_factory.mktemp("nli"), (Label.CONTRADICTED, Label.SUPPORTED, Label.NOT_FOUND))


def relabelled(folder: Path, target: Path, names: Sequence[str]) -> Path:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    config["id2label"] = dict(enumerate(names))
    config["label2id"] = {name: k for k, name in enumerate(names)}
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_field_case_41_a_model_with_contradiction_first_judges_rightly(folder: Path) -> None:
    network = load_nli(folder, "tiny")
    assert network.order[0] is Label.CONTRADICTED
    judge = LocalJudge(LexicalJudge(), Reader(network), PLAIN, "tiny@1", "nli")
    statements = ("Dogs are not allowed on the ferry.", "The library has a new roof.")
    asked = JudgeRequest(
        None, tuple(Statement(s, 0, len(s)) for s in statements), (Chunk("Dogs are allowed on the ferry.", id="c"),)
    )
    (judgement,) = judge.judge([asked])
    assert isinstance(judgement, Judgement)
    assert [v.label for v in judgement.verdicts] == [Label.CONTRADICTED, Label.NOT_FOUND]
    assert judgement.verdicts[0].evidence[0].quote == "Dogs are allowed on the ferry."
    assert judge.identity.startswith("nli/")
    assert judge.faithful_probability(asked, judgement) == Unscored(Reason.NOT_CONFIGURED), (
        "nothing was calibrated for it"
    )


def test_field_case_41_a_wrong_order_in_the_configuration_is_found_at_start(folder: Path, tmp_path: Path) -> None:
    turned = relabelled(folder, tmp_path / "turned", ("entailment", "contradiction", "neutral"))
    with pytest.raises(ModelError, match="does not judge known pairs"):
        load_nli(turned, "turned")


def test_field_case_41_labels_without_a_name_are_refused(folder: Path, tmp_path: Path) -> None:
    nameless = relabelled(folder, tmp_path / "nameless", ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(ModelError, match="nameless: the configuration calls output 0 'LABEL_0'"):
        load_nli(nameless, "nameless")


def test_what_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no NLI model that transformers reads"):
        load_nli(tmp_path, "nothing")


def test_a_long_premise_never_pushes_the_statement_out(folder: Path) -> None:
    network = load_nli(folder, "tiny")
    long = "The shop opens at nine in the morning. " + "Dogs are allowed on the ferry. " * 40
    one, other = network.scores(
        [(long, "The owner studied law in Lisbon."), (long, "The shop opens at nine in the morning.")]
    )
    assert one != other
    assert sum(one.values()) == pytest.approx(1.0, abs=1e-5)
