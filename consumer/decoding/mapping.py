"""Forms are data: one small mapping file a producer, one JMESPath expression a field (docs/events.md).

A step into a text that holds JSON opens it, so `message_metadata.retriever_resources` works where `message_metadata` is
a JSON text; `parse(x)` does the same by name.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jmespath
import orjson
from jmespath import functions, visitor
from jmespath.exceptions import JMESPathError

from consumer.decoding.opened import opened, unprinted

FIELDS = ("question", "contexts", "answer", "reference", "id", "timestamp", "trace_id", "conversation", "feedback",
          "labels", "prompt")  # fmt: skip
_FORM_KEYS = {"about", "order", "recognise", "fields", "labels", "unique", "trace", "anywhere", "skip"}
_RULE_KEYS = {"all", "any", "none", "where"}
_SIMPLE = re.compile(r"@?[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD = re.compile(r"[^\W\d]\w*")
MAX_NODES = 50_000
MAX_STEPS = 50_000
"""Steps of all expressions on one record, so that a giant record cannot hold up its partition."""
MAX_SEARCH_DEPTH = 12


class MappingError(Exception):
    """A mapping file that cannot be used; the message names the file, the key and what to do."""


class View:
    """One record as mapping files see it: texts that hold JSON open on a step, each of them once."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.steps_left = MAX_STEPS
        self._opened: dict[str, Any] = {}
        self._folded: dict[int, dict[str, str]] = {}
        self._named: dict[str, list[tuple[int, Any]]] | None = None

    def open(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value not in self._opened:
            self._opened[value] = opened(value)
        return self._opened[value]

    def step(self, node: Any, name: str) -> tuple[bool, Any]:
        """Whether `node` has the key `name`, and its value; the exact spelling wins over another case or separator."""
        node = self.open(node)
        if not isinstance(node, dict):
            return False, None
        if name in node:
            return True, node[name]
        keys = self._folded.get(id(node))
        if keys is None:
            keys = {folded(key): key for key in reversed(node)}
            self._folded[id(node)] = keys
        key = keys.get(folded(name))
        return (False, None) if key is None else (True, node[key])

    def named(self, skip: frozenset[str], stop: frozenset[str]) -> dict[str, list[tuple[int, Any]]]:
        """Every value in the record by its folded key, with its depth, the shallowest first. Keys in `skip` are left
        out with all below them; nothing below a key in `stop` is looked at."""
        if self._named is None:
            self._named = {}
            level: list[Any] = [self.document]
            nodes = 0
            for depth in range(MAX_SEARCH_DEPTH):
                deeper: list[Any] = []
                for node in level:
                    inner = self.open(node)
                    nodes += 1
                    if isinstance(inner, list):
                        deeper.extend(inner)
                    elif isinstance(inner, dict):
                        for key, value in inner.items():
                            short = folded(key)
                            if short not in skip:
                                self._named.setdefault(short, []).append((depth, value))
                                if short not in stop:
                                    deeper.append(value)
                if nodes > MAX_NODES:
                    break
                level = [v for v in deeper if isinstance(v, (dict, list)) or (isinstance(v, str) and v[:1] in "{[")]
        return self._named


def folded(key: str) -> str:
    """`key` without case and separators: `sourceDocuments`, `source_documents` and `Source-Documents` are one."""
    return key.lower().replace("_", "").replace("-", "").replace(" ", "")


class _Functions(functions.Functions):
    @functions.signature({"types": []})
    def _func_parse(self, value: Any) -> Any:
        if isinstance(value, str) and value[:1] == '"' and value[-1:] == '"':
            with contextlib.suppress(orjson.JSONDecodeError):
                return orjson.loads(value)
        return unprinted(value, [])


class _Interpreter(visitor.TreeInterpreter):
    """JMESPath's own, with texts opened where a step, an index or a projection goes into them."""

    def __init__(self, view: View) -> None:
        super().__init__(jmespath.Options(custom_functions=_FUNCTIONS))
        self._view = view

    def visit_field(self, node: Any, value: Any) -> Any:
        return super().visit_field(node, self._view.open(value))

    def visit_index(self, node: Any, value: Any) -> Any:
        return super().visit_index(node, self._view.open(value))

    def visit_slice(self, node: Any, value: Any) -> Any:
        return super().visit_slice(node, self._view.open(value))

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._view.steps_left -= 1
        if self._view.steps_left < 0:
            raise JMESPathError("the record is too large for this expression")
        result = super().visit(node, *args, **kwargs)
        # The base of a projection or of a flatten is a visited child: open it where it is a text with a list in it.
        return self._view.open(result) if isinstance(result, str) and node["type"] in _BASES else result


_BASES = {"field", "subexpression", "index", "index_expression"}
_FUNCTIONS = _Functions()


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a mapping file: a plain path, which is walked directly, or any JMESPath."""

    text: str
    steps: tuple[str, ...] = ()
    tree: Any = None
    heads: frozenset[str] | None = None
    """Top-level keys of which a record must have one for this to find anything; None where that is not known."""

    def find(self, view: View) -> tuple[bool, Any]:
        """Whether the record has it, and its value; a null value is there, too."""
        if self.steps:
            node: Any = view.document
            for step in self.steps:
                there, node = view.step(node, step)
                if not there:
                    return False, None
            return True, node
        if self.heads is not None and view.document.keys().isdisjoint(self.heads):
            return False, None
        try:
            value = _Interpreter(view).visit(self.tree, view.document)
        except (JMESPathError, TypeError, ValueError, RecursionError):
            return False, None
        # A projection gives an empty list where there is nothing to project: only a plain path finds an empty list.
        return value is not None and value != [], value


@dataclass(frozen=True, slots=True)
class Form:
    """A mapping file. `trace`: records of this form are parts of a trace, so a missing part is `incomplete`, not
    `missing`. `unique`: passages are logged once a citation, so a repeated one counts once. `anywhere`: the names in
    `fields` are looked up at every depth."""

    name: str
    about: str
    order: int
    all: tuple[Expression, ...]
    any: tuple[Expression, ...]
    none: tuple[Expression, ...]
    where: Expression | None
    fields: Mapping[str, tuple[Expression, ...]]
    labels: Mapping[str, tuple[Expression, ...]]
    unique: bool
    trace: bool
    anywhere: bool
    skip: frozenset[str]
    stop: frozenset[str]
    names: frozenset[str]

    def recognises(self, view: View) -> bool:
        """Whether the record has the keys that the rule asks for."""
        if not all(e.find(view)[0] for e in self.all):
            return False
        if self.any and not any(e.find(view)[0] for e in self.any):
            return False
        if any(e.find(view)[0] for e in self.none):
            return False
        return self.where is None or bool(self.where.find(view)[1])

    def candidates(self, field: str, view: View) -> Iterator[tuple[bool, Any]]:
        """The values that the record has for a field, the first expression's first."""
        expressions = self.fields.get(field, ())
        if not self.anywhere:
            for expression in expressions:
                yield expression.find(view)
            return
        named = view.named(self.skip, self.stop)
        for expression in expressions:
            if len(expression.steps) != 1:
                yield expression.find(view)
                continue
            found = named.get(folded(expression.text), ())
            if field == "contexts" and len(found) > 1:
                # Several retrievals of one answer stand side by side: at one depth they belong together.
                for depth in sorted({depth for depth, _ in found}):
                    side = [value for at, value in found if at == depth and value is not None]
                    yield bool(side), side if len(side) > 1 else (side[0] if side else None)
            else:
                for _, value in found:
                    yield True, value


def load_forms(user_dir: Path | None) -> tuple[Form, ...]:
    """The user's forms, then the shipped ones; each group by `order`, then the more specific rule first.

    Raises:
        MappingError: a directory that is not there, a file that is not TOML, an unknown key, a wrong expression.
    """
    shipped = [
        read_form(item.name.removesuffix(".toml"), item.read_text("utf-8"), item.name)
        for item in files("consumer.decoding").joinpath("forms").iterdir()
        if item.name.endswith(".toml")
    ]
    own: list[Form] = []
    if user_dir is not None:
        if not user_dir.is_dir():
            raise MappingError(f"decode.forms_dir: {user_dir} is not a directory")
        for path in sorted(user_dir.glob("*.toml")):
            try:
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise MappingError(f"{path}: {error}") from None
            own.append(read_form(path.stem, text, str(path)))
    names = {form.name for form in own}
    return (*_sorted(own), *_sorted([form for form in shipped if form.name not in names]))


def _sorted(forms: list[Form]) -> list[Form]:
    return sorted(forms, key=lambda f: (f.order, -(len(f.all) * 2 + bool(f.any) + bool(f.where)), f.name))


def read_form(name: str, text: str, place: str) -> Form:
    """A form from the text of its mapping file; `place` names the file in messages.

    Raises:
        MappingError: see `load_forms`.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MappingError(f"{place}: not TOML: {error}") from None
    _known(data, _FORM_KEYS, place, "")
    rule = _table(data, "recognise", place)
    _known(rule, _RULE_KEYS, place, "recognise.")
    raw_fields = _table(data, "fields", place)
    _known(raw_fields, set(FIELDS), place, "fields.")
    for required in ("contexts", "answer"):
        if required not in raw_fields:
            raise MappingError(f"{place}: fields.{required} is missing; give the expression that finds it")
    fields = {field: _expressions(value, place, f"fields.{field}") for field, value in raw_fields.items()}
    labels = {
        label: _expressions(value, place, f"labels.{label}") for label, value in _table(data, "labels", place).items()
    }
    where = _expressions(rule["where"], place, "recognise.where") if "where" in rule else ()
    every = [e for group in (*fields.values(), *labels.values()) for e in group]
    order = data.get("order", 50)
    if isinstance(order, bool) or not isinstance(order, int):
        raise MappingError(f"{place}: order must be a whole number (lower is tried first)")
    anywhere = _flag(data, "anywhere", place)
    return Form(
        name=name,
        about=str(data.get("about", "")),
        order=order,
        all=_expressions(rule.get("all", []), place, "recognise.all"),
        any=_expressions(rule.get("any", []), place, "recognise.any"),
        none=_expressions(rule.get("none", []), place, "recognise.none"),
        where=where[0] if where else None,
        fields=fields,
        labels=labels,
        unique=_flag(data, "unique", place),
        trace=_flag(data, "trace", place),
        anywhere=anywhere,
        skip=frozenset(folded(str(key)) for key in data.get("skip", [])),
        stop=frozenset(folded(e.text) for e in fields["contexts"]) if anywhere else frozenset(),
        names=frozenset(word for e in every for word in _WORD.findall(e.text)),
    )


def _known(data: Mapping[str, Any], known: set[str], place: str, prefix: str) -> None:
    for key in data:
        if key not in known:
            raise MappingError(f"{place}: unknown key {prefix}{key}; known are {', '.join(sorted(known))}")


def _table(data: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise MappingError(f"{place}: {key} must be a table ([{key}])")
    return table


def _flag(data: Mapping[str, Any], key: str, place: str) -> bool:
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise MappingError(f"{place}: {key} must be true or false")
    return value


def _expressions(value: Any, place: str, key: str) -> tuple[Expression, ...]:
    """One expression, or a list of which the first that finds something readable is taken."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise MappingError(f"{place}: {key} must be a JMESPath expression or a list of them, in quotes")
    return tuple(_expression(text.strip(), place, key) for text in texts)


def _expression(text: str, place: str, key: str) -> Expression:
    if _SIMPLE.fullmatch(text):
        return Expression(text, tuple(text.split(".")))
    try:
        tree = jmespath.compile(text).parsed
        return Expression(text, (), tree, _heads(tree))
    except JMESPathError as error:
        problem = str(error).splitlines()[0]
        raise MappingError(f"{place}: {key}: {text!r} is not a JMESPath expression: {problem}") from None


def _heads(tree: Any) -> frozenset[str] | None:
    """See `Expression.heads`: most expressions need no more than one look at the record's keys to be ruled out."""
    kind, children = tree["type"], tree.get("children", [])
    if kind == "field":
        return frozenset([tree["value"]])
    if kind == "or_expression":
        heads = [_heads(child) for child in children]
        return None if None in heads else frozenset().union(*(head for head in heads if head))
    if kind in _LED_BY_FIRST or (kind == "function_expression" and tree["value"] == "parse"):
        return _heads(children[0])
    return None


_LED_BY_FIRST = {"subexpression", "index_expression", "projection", "filter_projection", "flatten", "value_projection",
                 "pipe", "and_expression"}  # fmt: skip
