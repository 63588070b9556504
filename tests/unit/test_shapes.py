"""Every shape of contexts, questions and answers (field cases 26 and 70)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consumer.decoding.python_repr import NotARepr, read_repr
from consumer.decoding.reasons import DecodeError, Repair
from consumer.decoding.shapes import chunks_of
from consumer.decoding.turns import answer_of, question_of
from metrics.event import Chunk


def texts(value: Any) -> list[str]:
    return [chunk.text for chunk in chunks_of(value, [], max_chunks=100)]


# field case 26
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one chunk", ["one chunk"]),
        (["a b", "c d"], ["a b", "c d"]),
        ('["a b","c d"]', ["a b", "c d"]),
        ("['a b', \"c's\"]", ["a b", "c's"]),
        ([{"page_content": "a b", "metadata": {"source": "x"}}], ["a b"]),
        ([{"text": "a b"}], ["a b"]),
        ([{"content": "a b"}], ["a b"]),
        ([{"document": {"page_content": "a b"}}], ["a b"]),
        ([["nested one"], ["nested two"]], ["nested one", "nested two"]),
        ([["nested"]], ["nested"]),
        ([None, "a"], ["a"]),
        ("[Document(page_content='a b', metadata={'p': 1}), Document(page_content=\"c'd\")]", ["a b", "c'd"]),
        (["Document(page_content='a b')"], ["a b"]),
        (["page_content='a b' metadata={'x': <object at 0x7f>}"], ["a b"]),
        ([{"q": "What is it?", "a": "A lamp."}], ["What is it?\nA lamp."]),
        ([{"q": "only q", "a": ""}], ["only q"]),
        ({"documents": [["a b", "c d"]], "ids": [["1", "2"]]}, ["a b", "c d"]),
        ({"one": "first text", "two": "second text"}, ["first text", "second text"]),
        ({"results": [{"node": {"text": "a b"}}]}, ["a b"]),
        ([{"id": 1, "payload": {"page_content": "a b"}}], ["a b"]),
        ([{"id": "v", "score": 0.5, "values": [0.1], "metadata": {"text": "a b"}}], ["a b"]),
        ([{"_source": {"content": "a b"}, "_score": 2}], ["a b"]),
        ([{"content": {"text": "a b"}, "location": {"type": "S3"}}], ["a b"]),
        ([{"content": [{"type": "text", "text": "a b"}]}], ["a b"]),
        (["", "  ", "a"], ["a"]),
        ([], []),
        ({}, []),
        ("", []),
        # Prose that only begins like a structure stays as it is.
        ("[1] According to the handbook, lamps shine.", ["[1] According to the handbook, lamps shine."]),
        ("(see below) lamps", ["(see below) lamps"]),
        ("[1, 2]", ["[1, 2]"]),
        ('{"wattage": 5}', ['{"wattage": 5}']),
        # A printed text is no list of characters.
        ("['not closed", ["['not closed"]),
    ],
)  # fmt: skip
def test_contexts(value: Any, expected: list[str]) -> None:
    assert texts(value) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"标题": "手册", "内容": "保修期为两年。"}, Chunk("保修期为两年。", source="手册")),
        ({"标题": "手册", "正文": "保修期为两年。", "得分": 0.9}, Chunk("保修期为两年。", score=0.9, source="手册")),
        ({"来源": "a.pdf", "文本": "保修期为两年。", "分数": 0.9}, Chunk("保修期为两年。", score=0.9, source="a.pdf")),
        ({"段落": "保修期为两年。", "相似度": 0.9, "标题": "手册"}, Chunk("保修期为两年。", score=0.9, source="手册")),
        ({"段落": [{"内容": "保修期为两年。"}], "标题": "手册"}, Chunk("保修期为两年。")),
        ({"文档": {"内容": "保修期为两年。"}, "得分": 0.9}, Chunk("保修期为两年。", score=0.9)),
        ({"内容": "保修期为两年。", "元数据": {"来源": "a.pdf"}}, Chunk("保修期为两年。", source="a.pdf")),
        ({"问题": "保修多久？", "答案": "两年。"}, Chunk("保修多久？\n两年。")),
    ],
)  # fmt: skip
def test_an_item_of_a_list_is_one_passage(item: dict[str, Any], expected: Chunk) -> None:
    for value in ([item], {"results": [item]}, json.dumps([item]), [[item]], str([item])):
        assert chunks_of(value, [], max_chunks=9) == [expected]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"wording": "It lasts two years."}, Chunk("It lasts two years.")),
        ({"heading": "Guide", "wording": "It lasts two years."}, Chunk("It lasts two years.")),
        ({"title": "The hand book", "wording": "It lasts two years."},
         Chunk("It lasts two years.", source="The hand book")),
        ({"id": 7, "score": 0.5, "wording": "It lasts two years."}, Chunk("It lasts two years.", "7", 0.5)),
        ({"marks": ["lamp one", "lamp two"], "wording": "It lasts two years."}, Chunk("It lasts two years.")),
        ({"heading": "The hand book", "blob": {"text": "It lasts two years."}}, Chunk("It lasts two years.")),
    ],
)  # fmt: skip
def test_the_one_text_of_an_item_is_its_passage_and_its_key_no_id(item: dict[str, Any], expected: Chunk) -> None:
    for value in ([item, item], [[item, item]], [[item], [item]]):
        assert chunks_of(value, [], max_chunks=9) == [expected, expected]


@pytest.mark.parametrize(
    "item", [{"heading": "The hand book", "wording": "It lasts two years."}, {"名目": "手册", "条文": "保修期为两年。"}]
)
def test_an_item_with_several_texts_under_unknown_keys_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as caught:
        chunks_of([item, item], [], max_chunks=9)
    assert caught.value.reason == "bad_context_shape"
    assert all(name in caught.value.detail for name in item)


@pytest.mark.parametrize(
    "value",
    [
        '[("It lasts two years.", 0.9), ("Back in 30 days.", 0.5)]',
        "[('It lasts two years.', np.float64(0.9)), ('Back in 30 days.', np.float32(0.5))]",
        "[('It lasts two years.', tensor(0.9)), ('Back in 30 days.', tensor(0.5))]",
        "(('It lasts two years.', 0.9), ('Back in 30 days.', 0.5))",
        "[(0.9, 'It lasts two years.'), (0.5, 'Back in 30 days.')]",
        "[(Document(page_content='It lasts two years.'), 0.9), (Document(page_content='Back in 30 days.'), 0.5)]",
        ["('It lasts two years.', 0.9)", "('Back in 30 days.', 0.5)"],
        '[["It lasts two years.", 0.9], ["Back in 30 days.", 0.5]]',
        [["It lasts two years.", 0.9], ["Back in 30 days.", 0.5]],
        [[0.9, "It lasts two years."], [0.5, "Back in 30 days."]],
        {"results": [["It lasts two years.", 0.9], ["Back in 30 days.", 0.5]]},
    ],
)
def test_pairs_of_text_and_score(value: Any) -> None:
    assert chunks_of(value, [], max_chunks=9) == [
        Chunk("It lasts two years.", score=0.9), Chunk("Back in 30 days.", score=0.5),
    ]  # fmt: skip


@pytest.mark.parametrize("value", ['["lamp", 5]', '[["lamp", 5], ["desk", 7]]', "(5, 7)"])
def test_a_row_of_a_table_is_no_pair(value: str) -> None:
    assert texts(value) == [value]


def test_a_title_alone_is_no_passage() -> None:
    with pytest.raises(DecodeError):
        chunks_of([{"title": "The hand book", "url": "https://example.org/book"}], [], max_chunks=9)


def test_an_object_that_describes_itself_is_no_map_of_passages() -> None:
    value = {"title": "The hand book", "wording": "It lasts two years."}
    assert chunks_of(value, [], max_chunks=9) == [Chunk("It lasts two years.", source="The hand book")]


@pytest.mark.parametrize("value", [42, 4.5, True, [1, 2], [[1]], [{"id": 1}], {"a": {"b": 3}}, [{"text": 5}]])
def test_unknown_shapes_are_refused(value: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        chunks_of(value, [], max_chunks=100)
    assert caught.value.reason == "bad_context_shape"


def test_null_and_blank_entries_are_counted() -> None:
    repairs: list[str] = []
    assert chunks_of([None, "a", None, " ", {"text": None}], repairs, max_chunks=9) == [Chunk("a")]
    assert sorted(repairs) == ["blank_chunk", "null_chunk", "null_chunk", "null_chunk"]


def test_too_many_chunks() -> None:
    with pytest.raises(DecodeError) as caught:
        chunks_of(["a"] * 11, [], max_chunks=10)
    assert caught.value.reason == "too_many_chunks"
    assert len(chunks_of(["a"] * 10, [], max_chunks=10)) == 10


def test_id_score_and_source() -> None:
    chunks = chunks_of(
        [
            {"segment_id": "s1", "score": "0.7", "content": "a", "document_name": "Guide"},
            {"node": {"id_": "n", "text": "b", "metadata": {"file_name": "b.md"}}, "score": 0.5},
            [{"page_content": "c", "metadata": {"source": "c.pdf"}}, 0.25],
            {"doc_id": 0, "text": "d", "similarity": None},
        ],
        [],
        max_chunks=9,
    )
    assert chunks == [
        Chunk("a", "s1", 0.7, "Guide"), Chunk("b", "n", 0.5, "b.md"), Chunk("c", None, 0.25, "c.pdf"), Chunk("d", "0"),
    ]  # fmt: skip


# field case 67
@pytest.mark.parametrize(
    ("score", "read", "kinds"),
    [
        (0.7, 0.7, []),
        ("0.7", 0.7, [Repair.NUMBER_IN_TEXT]),
        ("NaN", None, [Repair.NON_FINITE_NUMBER]),
        (True, None, [Repair.BAD_NUMBER]),
        ("high", None, [Repair.BAD_NUMBER]),
        (-0.0, 0.0, []),
        (10**30, 1e30, []),
    ],
)
def test_a_retrievers_score(score: Any, read: float | None, kinds: list[str]) -> None:
    repairs: list[str] = []
    assert chunks_of([{"text": "a", "score": score}], repairs, max_chunks=9)[0].score == read
    assert repairs == kinds


@pytest.mark.parametrize(
    ("value", "question", "turns"),
    [
        ("Why?", "Why?", []),
        (" Why? ", "Why?", []),
        ([{"role": "user", "content": "Why?"}], "Why?", []),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "Why?"}], "Why?", ["user: a", "assistant: b"]),
        (json.dumps([{"role": "user", "content": "Why?"}]), "Why?", []),
        ([{"type": "human", "content": "Why?"}], "Why?", []),
        ([["system", "s"], ["human", "Why?"]], "Why?", []),
        ([{"obj": "Human", "value": "Why?"}, {"obj": "AI", "value": "Because"}], "Why?", []),
        ([{"from": "human", "value": "Why?"}], "Why?", []),
        ([{"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "image_url"}]}], "Why?", []),
        ([{"role": "user", "parts": [{"text": "Why?"}]}], "Why?", []),
        ({"question": "Why?"}, "Why?", []),
        ({"messages": [{"role": "user", "content": "Why?"}]}, "Why?", []),
        ({"text": "Why?"}, "Why?", []),
        ([{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Why?"}}],
         "Why?", []),
        ("[HumanMessage(content='a'), AIMessage(content='b'), HumanMessage(content='Why?')]", "Why?",
         ["user: a", "assistant: b"]),
        ("[sic] Why?", "[sic] Why?", []),
        ('{"lamp": 1}', '{"lamp": 1}', []),
        ([{"role": "assistant", "content": "only me"}], None, []),
    ],
)  # fmt: skip
def test_questions(value: Any, question: str | None, turns: list[str]) -> None:
    read = question_of(value, [])
    assert read is not None
    assert read[0] == question
    assert [f"{turn.role}: {turn.content}" for turn in read[1]] == turns


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (" Yes. ", "Yes."),
        ([{"type": "text", "text": "Yes"}, {"type": "text", "text": ", it is."}], "Yes, it is."),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}], "Yes."),
        (["Yes.", "It is."], "Yes. It is."),
        (["是的。", "没错。"], "是的。没错。"),
        ({"role": "assistant", "content": "Yes."}, "Yes."),
        (
            {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}, {"message": {"content": "No."}}]},
            "Yes.",
        ),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, ""),
        ({"content": [{"text": "Yes."}]}, "Yes."),
        ("content='Yes.' additional_kwargs={}", "Yes."),
        ("AIMessage(content='Yes.', additional_kwargs={})", "Yes."),
        (json.dumps({"answer": "Yes."}), "Yes."),
        # An answer may be JSON by right.
        ('{"watt": 5}', '{"watt": 5}'),
        ("[1] says so.", "[1] says so."),
        ("", ""),
    ],
)
def test_answers(value: Any, answer: str) -> None:
    assert answer_of(value, []) == answer


@pytest.mark.parametrize("value", [5, True, {"tokens": 5}, [1]])
def test_what_is_no_answer(value: Any) -> None:
    assert answer_of(value, []) is None


@pytest.mark.parametrize(
    "text",
    ["", "word", "f(x", "['a'", "{'a': }", "x=5", "[" * 10_000, "Doc(" * 10_000, "1 + 1", "a.b.c", "{1, 'a': 2}"],
)
def test_what_python_did_not_print(text: str) -> None:
    with pytest.raises(NotARepr):
        read_repr(text)


def test_escapes_of_printed_texts() -> None:
    assert read_repr(r"['a\nb', 'c\'d', '\u4f60\x41', r'\n', b'x']") == ["a\nb", "c'd", "你A", r"\n", "x"]


def test_a_word_among_passages_under_their_own_keys_is_not_lost_in_silence() -> None:
    repairs: list[str] = []
    chunks = chunks_of({"a": "x", "b": ["Room 4 is on the left.", "It is open."]}, repairs, max_chunks=10)
    assert [chunk.text for chunk in chunks] == ["Room 4 is on the left.", "It is open."]
    assert repairs == ["word_left_out"]
