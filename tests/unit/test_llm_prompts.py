"""Prompt files: shipped ones are whole, own ones are checked, adapted ones keep what programs read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from metrics.llm.adapting import adapted, fixed_parts, stretches_of
from metrics.llm.chat import Message, Reply
from metrics.llm.passages import tokens_of
from metrics.llm.prompts import PLACES, PromptError, filled, load_book, parse_prompts

BOOK = load_book()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_shipped_prompts_are_native_whole_and_small(language: str) -> None:
    found = BOOK.sets[language]
    assert found.version.startswith(f"{language}/")
    assert set(found.prompts) == set(PLACES)
    for name, prompt in found.prompts.items():
        assert tokens_of(prompt.system + prompt.user) < 260, name
        chinese = bool(re.search(r"[\u4e00-\u9fff]", prompt.system + prompt.user))
        assert chinese is (language == "zh"), name


@pytest.mark.parametrize("language", ["en", "zh"])
def test_questions_about_one_claim_begin_alike(language: str) -> None:
    """A server that keeps prefixes reads the passages once for all three."""
    verdict, doubt, confirm = (BOOK.sets[language].prompts[name] for name in ("verdict", "doubt", "confirm"))
    assert verdict.system == doubt.system == confirm.system
    heads = {prompt.user[: prompt.user.index("{claim}")] for prompt in (verdict, doubt, confirm)}
    assert len(heads) == 1


def test_both_languages_ask_for_the_same_keys() -> None:
    keys = re.compile(r'"([a-z_]+)"')
    for name in PLACES:
        english, chinese = (set(keys.findall(BOOK.sets[x].prompts[name].user)) for x in ("en", "zh"))
        assert english == chinese, name


def test_a_language_without_prompts_gets_the_english_ones() -> None:
    assert BOOK.of("de") is BOOK.sets["en"]
    assert BOOK.of("zh").language == "zh"


def test_the_version_changes_with_the_text() -> None:
    text = BOOK.sets["en"].text
    edited = parse_prompts(text.replace("Use only the passages.", "Use the passages."), "en.toml")
    assert edited.version == BOOK.sets["en"].version
    assert edited.digest != BOOK.sets["en"].digest


def test_places_are_filled_once_and_empty_lines_go() -> None:
    template = "Question: {question}\nBefore: {before}\n{claim}, {claim}\nplain"
    values = {"question": "What is {claim}?", "before": "", "claim": "x"}
    assert filled(template, values) == "Question: What is {claim}?\nx, x\nplain"


def test_own_prompts_stand_beside_or_instead(tmp_path: Path) -> None:
    text = BOOK.sets["en"].text
    (tmp_path / "de.toml").write_text(text.replace('"en"', '"de"').replace('"en/1"', '"de/3"'), "utf-8")
    (tmp_path / "en.toml").write_text(text.replace('"en/1"', '"en/mine"'), "utf-8")
    book = load_book(tmp_path)
    assert sorted(book.sets) == ["de", "en", "zh"]
    assert (book.of("de").version, book.of("en").version) == ("de/3", "en/mine")
    assert "de/3@" in book.version


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.replace("[verdict]", "[verdikt]"), r"no section \[verdict\]"),
        (lambda t: t.replace("Claim: {claim}", "Claim:", 1), r"\[verdict\]: the place \{claim\} is missing"),
        (lambda t: t.replace("Claim: {claim}", "Claim: {claim} {claim}", 1), r"\{claim\} stands there 2 times"),
        (lambda t: t.replace("Claim: {claim}", "Claim: {claim} {text}", 1), r"there is no place \{text\}"),
        (lambda t: t.replace('language = "en"', 'language = "English"'), "two or three letters"),
        (lambda t: t.replace('version = "en/1"', ""), "version is missing"),
        (lambda t: t + "[", "not TOML"),
        (lambda t: t.replace("[generic]", "[other]"), r"no section \[generic\]"),
        (lambda t: t.split("What is the text about?")[0] + "'''\n", "at least 5 questions, one a line; found 1"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(tmp_path: Path, change: Callable[[str], str], says: str) -> None:
    (tmp_path / "xx.toml").write_text(change(BOOK.sets["en"].text), "utf-8")
    with pytest.raises(PromptError, match=says) as raised:
        load_book(tmp_path)
    assert "xx.toml" in str(raised.value)
    with pytest.raises(PromptError, match="no such folder"):
        load_book(tmp_path / "none")


class Translator:
    """Translates by turning every word but those that programs read; `spoil` breaks the replies it is given."""

    model = "translator-1"

    def __init__(self, spoil: Callable[[str, str], str] = lambda text, asked: text) -> None:
        self.spoil = spoil
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        question = messages[-1]["content"]
        text = asked_for(question)
        self.asked.append(text)
        parts = (part if fixed else re.sub(r"[A-Za-z]+", turned, part) for part, fixed in stretches_of(text))
        return Reply(json.dumps({"text": self.spoil("".join(parts), question)}), "stop")


def asked_for(question: str) -> str:
    return question.partition("<text>")[2].removesuffix("</text>")


def turned(found: re.Match[str]) -> str:
    return f"{found[0][::-1]}o"


def test_adapted_prompts_keep_places_keys_and_words() -> None:
    english = BOOK.sets["en"]
    chat = Translator()
    found = adapted(english, "de", chat).prompts
    assert (found.language, found.version) == ("de", "de/1")
    assert "translator-1" in found.text
    assert parse_prompts(found.text, "de.toml") == found
    for name in PLACES:
        user, original = found.prompts[name].user, english.prompts[name].user
        assert fixed_parts(user) == fixed_parts(original), name
        assert len(user.splitlines()) == len(original.splitlines()), "a line without a value is left out"
        assert not re.search(r"\b(?:the|Reply|claim|passages?)\b", prose(found.prompts[name].system + user)), name
    assert len(chat.asked) == len(set(chat.asked)), "what is known is not asked again"
    assert len(found.generic) == len(english.generic)


def prose(text: str) -> str:
    return " ".join(words for words, fixed in stretches_of(text) if not fixed)


def test_adapted_questions_about_one_claim_begin_alike() -> None:
    found = adapted(BOOK.sets["en"], "de", Translator()).prompts
    verdict, doubt, confirm = (found.prompts[name] for name in ("verdict", "doubt", "confirm"))
    assert verdict.system == doubt.system == confirm.system
    assert len({prompt.user[: prompt.user.index("{claim}")] for prompt in (verdict, doubt, confirm)}) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: re.sub(r"\{[a-z_]+\}", "", text),
        lambda text: re.sub(r"\{[a-z_]+\}", "{Behauptung}", text),
        lambda text: re.sub(r"\btrue\b", "wahr", text),
        lambda text: f"{text} {text}" if "{" in text else text,
        lambda text: re.sub(r"(\{[a-z_]+\})", r"\1\n", text),
    ],
)
def test_a_judge_that_loses_places_is_asked_for_the_words_between(spoil: Callable[[str], str]) -> None:
    english, chat = BOOK.sets["en"], Translator(lambda text, asked: spoil(text))
    found = adapted(english, "de", chat).prompts
    for name in PLACES:
        assert fixed_parts(found.prompts[name].user) == fixed_parts(english.prompts[name].user), name
    assert "Claim: {claim}" in chat.asked
    assert found.prompts["verdict"].user.splitlines()[5] == "mialCo: {claim}"
    assert "gnidroWo" in found.prompts["doubt"].user


def test_one_bad_reply_is_made_good_by_another() -> None:
    chat = Translator(lambda text, asked: text if "Translate the text again" in asked else "")
    adapted(BOOK.sets["en"], "de", chat)
    assert chat.asked[0] == chat.asked[1]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: "Use only the passages.", r"\[split\] system: .*«You rewrite .*» into German has English words"),
        (lambda text: "", "could not be read"),
        (lambda text: "!?", "is empty"),
        (lambda text: f"{text} only the passages", "has English words: only the"),
        (lambda text: text * 9, "is much longer"),
        (lambda text: text[:4], "is much shorter"),
        (lambda text: f"{text}\n", ""),
        (lambda text: f"a\n{text}", "is not one line"),
        (lambda text: f"{{{text}}}", "too often"),
        (lambda text: f'"{text}', 'has "'),
        (lambda text: f"{text} JSON", "has JSON too often"),
    ],
)
def test_words_that_are_not_translated_end_it(spoil: Callable[[str], str], says: str) -> None:
    chat = Translator(lambda text, asked: spoil(text))
    if not says:
        adapted(BOOK.sets["en"], "de", chat)
        return
    with pytest.raises(PromptError, match=says):
        adapted(BOOK.sets["en"], "de", chat)


def test_english_is_not_taken_for_a_translation() -> None:
    """Nor what the judge repeats twice, but for one word, which is told."""
    english = BOOK.sets["en"]
    with pytest.raises(PromptError, match="is the original"):
        adapted(english, "de", Translator(lambda text, asked: asked_for(asked)))
    same = Translator(lambda text, asked: "Question: {question}" if ">Question: " in asked else text)
    found = adapted(english, "fr", same)
    assert found.unchanged == ("question",)
    assert "Question: {question}" in found.prompts.prompts["verdict"].user
    with pytest.raises(PromptError, match="not in the script"):
        adapted(english, "ru", Translator())
    with pytest.raises(PromptError, match="English already"):
        adapted(english, "en", Translator())


def test_a_generic_question_that_is_not_translated_is_left_out_and_named() -> None:
    english = BOOK.sets["en"]
    stubborn = Translator(lambda text, asked: asked_for(asked) if "the text" in asked_for(asked) else text)
    found = adapted(english, "de", stubborn)
    assert found.left_out == tuple(q for q in english.generic if "the text" in q)
    assert len(found.prompts.generic) == len(english.generic) - len(found.left_out)
    assert not set(found.prompts.generic) & set(english.generic)
    with pytest.raises(PromptError, match=r"\[generic\] questions: no translation into German of What is this about"):
        adapted(
            english,
            "de",
            Translator(lambda text, asked: asked_for(asked) if asked_for(asked) in english.generic else text),
        )


def test_a_language_that_has_no_name_needs_one() -> None:
    with pytest.raises(PromptError, match="English name"):
        adapted(BOOK.sets["en"], "qq", Translator())
    assert adapted(BOOK.sets["en"], "qq", Translator(), "Quenya").prompts.language == "qq"
