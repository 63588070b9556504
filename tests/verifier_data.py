"""A small data folder in the form of the labelled sets, and a tiny network, for the tests of the verifier."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from metrics.encoder import Encoder, Layer, Network, Norm, Weights
from metrics.tokens import Tokens
from metrics.verifier.network import FROZEN, exact
from metrics.verifier.sources import MEASURED, MEASURED_PAIRS

SUBJECTS = ("harbour", "library", "museum", "bridge", "school", "market", "theatre", "station", "garden", "tower")
SHARED_SENTENCE = "The lighthouse keeper of Ostwick counted 417 ships in the winter of 1902 alone."


def passage(k: int) -> str:
    """A passage of six sentences with numbers and names, of its own for every `k`."""
    what = SUBJECTS[k % len(SUBJECTS)]
    return (
        f"The old {what} of Quarter {k} was opened by Martha Ilves in {1900 + k}. {200 + 7 * k} people visit it. "
        f"The architect Pieter Holm built it from {30 + k} tons of stone. Nobody may enter it before {k} o'clock. "
        f"In {1950 + k} the town of Brennick bought the {what} from Lucas Amery. Its roof was replaced after storm {k}."
    )


def chinese_passage(k: int) -> str:
    return (
        f"第{k}号图书馆位于海宁市，于{1950 + k}年正式对外开放。馆内共有{3 + k}万册图书，每天接待{100 + 3 * k}位读者。"
        f"读者可以免费办理借书证，但是不能带走报纸。《平原日报》称该馆是全市最大的建筑。"
    )


def data_folder(folder: Path) -> Path:
    """All sets that the verifier reads, with a few dozen rows each."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in MEASURED}
    answers["wice_claims"] = [
        {"contexts": [f"{SHARED_SENTENCE} It was cold."], "label": 1, "answer": "Cold.", "group": "l"}
    ]
    answers["clapnq_dev"] = [
        {"contexts": [passage(k)], "answer": f"It was opened by Martha Ilves in {1900 + k}.", "group": f"c{k}"}
        for k in range(40)
    ]
    answers["halueval_qa"] = [
        {
            "contexts": [passage(100 + k)],
            "question": "Who built it?",
            "label": label,
            "group": f"h{k}",
            "answer": answer,
        }
        for k in range(30)
        for label, answer in ((1, "Pieter Holm"), (0, "It was built by the painter Lucas Amery in a single summer."))
    ]
    answers["nomiracl_zh_en"] = [
        {"contexts": [make(300 + 10 * k + j) for j in range(4)], "lang": lang, "group": f"n{lang}{k}"}
        for k in range(8)
        for lang, make in (("en", passage), ("zh", chinese_passage))
    ]
    answers["zh_qa_positives"] = [
        {"contexts": [chinese_passage(k)], "question": "图书馆位于哪里？", "answer": "海宁市", "group": f"z{k}"}
        for k in range(60)
    ]
    answers["uhgeval_zh"] = [
        {
            "contexts": [chinese_passage(600 + k)],
            "answer": f"馆内共有{900 + k}万册图书。",
            "spans": [{"start": 4, "end": 8}],
            "real_continuation": "读者可以免费办理借书证，但是不能带走报纸。",
            "group": f"u{k}",
        }
        for k in range(40)
    ]
    answers["wice_spans"] = [
        {
            "contexts": [passage(700 + k)],
            "answer": "Nobody may enter before midnight.",
            "spans": [{"start": 24, "end": 32}],
            "split": ("train", "dev")[k % 2],
            "group": f"w{k}",
        }
        for k in range(10)
    ]
    for name, rows in answers.items():
        write_rows(folder / "labelled" / f"{name}.jsonl.gz", rows)
    for name in MEASURED_PAIRS:
        write_rows(folder / "nli" / f"{name}.jsonl.gz", [])
    kinds = ("entailment", "contradiction", "neutral", "not_entailment")
    for n, name in enumerate(("nli_fever", "nli_docnli_binary", "nli_cad_snli", "nli_mnli_taxi", "nli_climatefever",
                              "nli_fm2", "nli_fever_symmetric")):  # fmt: skip
        rows = [
            {"premise": passage(1000 + 100 * n + k), "hypothesis": f"The town paid {k + j} coins.", "label": kinds[j]}
            for k in range(30)
            for j in range(4)
        ]
        rows.append({"premise": f"{SHARED_SENTENCE} Set {n}.", "hypothesis": "Ships came.", "label": "entailment"})
        write_rows(folder / "nli" / f"{name}.jsonl.gz", rows)
    return folder


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


WORDS = 400


def tiny_tokens() -> Tokens:
    """A token a word, or a character where words are not set apart; 0, 1 and 2 are special."""

    def cut(texts: Any) -> list[list[int]]:
        found = []
        for text in texts:
            words = [w for part in text.split() for w in ([part] if part.isascii() else part)]
            found.append([3 + sum(map(ord, word)) % (WORDS - 3) for word in words])
        return found

    return Tokens(cut, 512, {}, (0,), (2,))


def tiny_base() -> tuple[Encoder, Mapping[str, Tensor]]:
    """A network of `FROZEN` + 1 layers and 16 values a token, and its tensors by transformers' names."""
    random = torch.Generator().manual_seed(5)
    hidden, wide, layers = 16, 32, FROZEN + 1
    network = Network(hidden, layers, 2, 512, 1e-12)

    def made(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random) * shape[-1] ** -0.5

    tensors: dict[str, Tensor] = {}
    for i in range(layers):
        own = f"encoder.layer.{i}"
        for name, rows, columns in (
            ("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", wide, hidden), ("output.dense", hidden, wide),
        ):  # fmt: skip
            tensors[f"{own}.{name}.weight"], tensors[f"{own}.{name}.bias"] = made(rows, columns), torch.zeros(rows)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors[f"{own}.{name}.weight"], tensors[f"{own}.{name}.bias"] = torch.ones(hidden), torch.zeros(hidden)
    norm = Norm(torch.ones(hidden), torch.zeros(hidden))

    def layer(i: int) -> Layer:
        own = f"encoder.layer.{i}"
        attention = [f"{own}.attention.self.{part}" for part in ("query", "key", "value")]
        return Layer(
            exact(*(torch.cat([tensors[f"{a}.{kind}"] for a in attention]) for kind in ("weight", "bias"))),
            exact(tensors[f"{own}.attention.output.dense.weight"], tensors[f"{own}.attention.output.dense.bias"]),
            norm,
            exact(tensors[f"{own}.intermediate.dense.weight"], tensors[f"{own}.intermediate.dense.bias"]),
            exact(tensors[f"{own}.output.dense.weight"], tensors[f"{own}.output.dense.bias"]),
            norm,
        )

    weights = Weights(made(WORDS, hidden) * 4, made(512, hidden), norm, tuple(layer(i) for i in range(layers)))
    return Encoder(network, weights, "fp32"), tensors
