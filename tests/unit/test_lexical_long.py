"""Very long answers and contexts: what the index remembers changes no verdict, and nothing takes minutes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.event import Chunk
from metrics.judge import Judgement, JudgeRequest
from metrics.lexical.evidence import COMMON, Index
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.quantities import agrees, quantities
from metrics.lexical.reading import read
from metrics.statements import MAX_STATEMENTS, claims_of

SAID = """
    policy staff leave office manager annual request approve travel expense claim receipt room badge visitor Berlin
    London report email contract supplier invoice payment month quarter increase password account customer refund
"""
WORDS = SAID.split()
HAN = "员工年假天数必须提前申请经理批准报销发票会议室容纳超过政策部门安全密码账户服务客户退货保修合同供应商付款季度"
TERMS = st.sampled_from(["red", "blue", "green", "car", "door", "room", "house", "tree"])
TEXTS = st.lists(st.lists(TERMS | st.sampled_from(["5", "12", "1,200", "30%"]), min_size=1, max_size=9), max_size=30)


def index_of(sentences: list[list[str]]) -> Index:
    return Index([read("\n".join(" ".join(words) + "." for words in sentences))], {})


@given(TEXTS, st.lists(st.tuples(TERMS, TERMS), max_size=20))
def test_close_terms_are_those_of_some_sentence(sentences: list[list[str]], asked: list[tuple[str, str]]) -> None:
    index = index_of(sentences)
    expected = {
        (one, other)
        for one, other in asked
        for sentence in index.sentences
        for k, term in enumerate(sentence.terms)
        if term == one and other in sentence.terms[k + 1 : k + 4]
    }
    assert index.close(asked) == expected


@given(TEXTS, st.sampled_from(["5 rooms", "1,200", "12%", "30 percent"]))
def test_holders_are_the_sentences_with_a_quantity_that_agrees(sentences: list[list[str]], text: str) -> None:
    index = index_of(sentences)
    for said in quantities(text) * 2:
        expected = {at for at, s in enumerate(index.sentences) if any(agrees(said, q) for q in s.numbers)}
        assert index.holders(said) == expected


@settings(deadline=None)
@given(TEXTS, st.dictionaries(TERMS, st.floats(0.02, 1.0), max_size=8), st.sampled_from(["", "5 and 12", "30%"]))
def test_arrays_find_the_sentences_that_a_table_finds(
    sentences: list[list[str]], weights: dict[str, float], text: str
) -> None:
    index = index_of([*sentences, ["a"], ["red"], ["red"], ["red"]])
    held = [(weight, term) for term, weight in weights.items() if term in index.postings]
    assert index._best_of_many(held, quantities(text)) == index._best(held, quantities(text))


def test_a_term_of_too_many_sentences_tells_nothing_there() -> None:
    index = index_of([["red", "car"]] * COMMON + [["red", "car", "door"], ["car", "house"]])
    assert index.close([("red", "car"), ("car", "door"), ("car", "house")]) == {("red", "car")}


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(14)).capitalize() + f" {rng.randrange(90)}."


def han(rng: random.Random) -> str:
    return "".join(rng.choice(HAN) for _ in range(24)) + "。"


SHAPES = {
    "english": sentence,
    "chinese": han,
    "without_full_stops": lambda rng: rng.choice(WORDS) + " ",
    "chinese_without_full_stops": lambda rng: rng.choice(HAN),
    "list": lambda rng: f"- {sentence(rng)}\n",
    "table": lambda rng: f"| {rng.choice(WORDS)} | {rng.randrange(900)} | {sentence(rng)} |\n",
    "numbers": lambda rng: f"{rng.randrange(10 ** rng.randrange(1, 7))} ",
}


def long(shape: str, characters: int, seed: int) -> str:
    rng, made, length = random.Random(seed), [], 0
    while length < characters:
        made.append(SHAPES[shape](rng))
        length += len(made[-1])
    return "".join(made)


def judged_in(shape: str, characters: int) -> float:
    """Seconds of the processor for an answer of so many characters over a context of a quarter more."""
    answer, context = long(shape, characters, 1), long(shape, characters * 5 // 4, 2)
    began = time.process_time()
    statements = claims_of(answer).statements
    [found] = LexicalJudge().judge([JudgeRequest("?", statements, (Chunk(context),))])
    took = time.process_time() - began
    assert isinstance(found, Judgement)
    assert characters // 1500 < len(found.verdicts) <= MAX_STATEMENTS
    return took


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_text_takes_about_four_times_as_long(shape: str) -> None:
    """Not sixteen times, which made minutes of a megabyte. A ratio, so that no machine is too slow for it."""
    judged_in(shape, 2_000)  # loads what is loaded once
    assert judged_in(shape, 120_000) < 9 * judged_in(shape, 30_000)


def test_no_order_of_a_set_changes_a_probability() -> None:
    """Strings are hashed otherwise in every process."""
    code = (
        "from metrics.lexical.conflicts import Conflict, Kind\n"
        "from metrics.lexical.evidence import Window\n"
        "from metrics.lexical.features import _agreement\n"
        "weights = {f'w{k}': 0.1 + k / 7 for k in range(12)}\n"
        "against = [Conflict(Kind.NAME, 'a', 'b', terms=tuple(weights)[:9])]\n"
        "print(repr(_agreement(Window(0, (), 0.31), against, weights, sum(weights.values()))))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": str(seed)}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in range(8)
    }  # fmt: skip
    assert len(said) == 1, said
