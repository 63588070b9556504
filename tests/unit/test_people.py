"""Claims that people judged, as the last stage of training reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metrics.lexical.corpus import LABELLED
from metrics.verifier import people
from metrics.verifier.sources import CONTRADICTED, SUPPORTED, UNSUPPORTED, Claim
from tests.verifier_data import passage, tiny_tokens, write_rows


def lengths(texts: list[str] | tuple[str, ...] | Any) -> list[int]:
    return [len(ids) for ids in tiny_tokens().cut(texts)]


def folder(path: Path, **sets: list[dict[str, Any]]) -> Path:
    for name in (*LABELLED, *people.REPORTED):
        write_rows(path / "labelled" / f"{name}.jsonl.gz", sets.get(name, []))
    return path


def row(k: int, answer: str, label: int, group: str = "g", **more: Any) -> dict[str, Any]:
    return {"id": f"{group}-{k}", "contexts": [passage(3)], "answer": answer, "label": label, "group": group, **more}


def claims(path: Path) -> dict[str, Claim]:
    return {c.text: c for p in people.passages(path, lengths) for c in p.claims}


def test_spans_tell_which_statements_are_unsupported_and_where(tmp_path: Path) -> None:
    answer = "Martha Ilves opened the bridge in 1903. The roof was made of pure gold. It has 999 tons of stone."
    spans = [
        {"start": answer.index("pure gold"), "end": answer.index("pure gold") + 9, "type": "Evident Baseless Info"}
    ]
    spans += [{"start": answer.index("999"), "end": answer.index("999") + 3, "type": "Evident Conflict"}]
    found = claims(folder(tmp_path, ragtruth_qa_part=[row(1, answer, 0, spans=spans)]))
    assert [c.label for c in found.values()] == [SUPPORTED, UNSUPPORTED, CONTRADICTED]
    marked = {text: [text[a:b] for a, b in c.spans or ()] for text, c in found.items()}
    assert list(marked.values()) == [[], ["pure gold"], ["999"]]


def test_the_sentence_that_no_faithful_answer_has_is_the_unsupported_one(tmp_path: Path) -> None:
    right = row(1, "Martha Ilves opened the bridge. Its roof was replaced after storm 3.", 1)
    wrong = row(2, "Martha Ilves opened the bridge. Its roof was never replaced.", 0)
    unclear = row(3, "Lucas Amery closed the bridge. Its roof has gone.", 0)
    found = claims(folder(tmp_path, summedits_part=[right, wrong, unclear]))
    assert {text: c.label for text, c in found.items()} == {
        "Martha Ilves opened the bridge.": SUPPORTED,
        "Its roof was replaced after storm 3.": SUPPORTED,
        "Its roof was never replaced.": UNSUPPORTED,
    }


def test_groups_left_out_are_not_read_nor_premises_that_share_a_sentence_with_them(tmp_path: Path) -> None:
    own = row(1, "Martha Ilves opened the bridge.", 1, "a")
    same_passage = row(1, "Martha Ilves opened it in 1903.", 1, "b")
    other = {**row(1, "Martha Ilves opened the museum in 1902.", 1, "c"), "contexts": [passage(2)]}
    data = folder(tmp_path, begin_v2=[own, same_passage, other])
    assert {p.group for p in people.passages(data, lengths)} == {"a", "b", "c"}
    assert {p.group for p in people.passages(data, lengths, lambda group: group == "a")} == {"c"}


def test_what_a_set_that_is_only_reported_shares_is_left_out(tmp_path: Path) -> None:
    judged = [row(1, "Martha Ilves opened the bridge.", 1)]
    assert not claims(folder(tmp_path, begin_v2=judged, qags=[{"contexts": [passage(3)]}]))


def test_a_premise_is_the_windows_that_hold_most_of_the_statement(tmp_path: Path) -> None:
    contexts = [passage(k) for k in range(8)]
    found = people.passages(
        folder(tmp_path, begin_v2=[{**row(1, "Martha Ilves opened it in 1905.", 1), "contexts": contexts}]), lengths
    )
    (premise,) = {p.text for p in found}
    assert "in 1905" in premise
    assert len(premise) < sum(map(len, contexts)) / 2
