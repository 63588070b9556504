"""Prompt files: shipped ones are whole, own ones are checked, adapted ones keep what programs read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from metrics.llm.adapting import adapted, fixed_parts
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
    """Translates by marking every word; `spoil` breaks the first `times` replies of each text."""

    model = "translator-1"

    def __init__(self, spoil: Callable[[str], str], times: int) -> None:
        self.spoil, self.times, self.calls = spoil, times, 0

    def complete(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, object] | None) -> Reply:
        user = messages[-1]["content"]
        text = user.split("\n\n", 1)[1].rsplit("\n\nReply with JSON", 1)[0]
        translation = re.sub(r"\b(the|is)\b", lambda m: f"{m[0]}en", text, flags=re.IGNORECASE)
        translation += " !"
        self.calls += 1
        if self.times > 1 or (self.times and "Your last translation" not in user):
            translation = self.spoil(translation)
        return Reply(json.dumps({"text": translation}), "stop")


def test_adapted_prompts_keep_places_keys_and_words() -> None:
    chat = Translator(lambda text: text.replace("{claim}", "{Behauptung}"), 1)
    found = adapted(BOOK.sets["en"], "de", chat)
    assert (found.language, found.version) == ("de", "de/1")
    assert "translator-1" in found.text
    assert parse_prompts(found.text, "de.toml") == found
    for name in PLACES:
        assert fixed_parts(found.prompts[name].user) == fixed_parts(BOOK.sets["en"].prompts[name].user), name
    assert chat.calls > len(PLACES)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text.replace("{claim}", "{Behauptung}"), r"\[verdict\] user: .* lacks \{claim\}"),
        (lambda text: text.replace('"supported"', '"gestützt"'), 'lacks "supported"'),
        (lambda text: text.replace("</passages ", "</Passagen "), "lacks </passages"),
    ],
)
def test_a_translation_that_loses_something_is_refused(spoil: Callable[[str], str], says: str) -> None:
    with pytest.raises(PromptError, match=says):
        adapted(BOOK.sets["en"], "de", Translator(spoil, 9))


def test_a_language_that_has_no_name_needs_one() -> None:
    with pytest.raises(PromptError, match="English name"):
        adapted(BOOK.sets["en"], "qq", Translator(str, 0))
    assert adapted(BOOK.sets["en"], "qq", Translator(str, 0), "Quenya").language == "qq"
