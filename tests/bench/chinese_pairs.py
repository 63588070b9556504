"""Chinese minimal pairs: a true sentence about a passage and the same with one number, negation or name changed.

Written for measuring only: nothing of it is known to what trains the verifier, and it edits by filling forms, not by
exchanging words in sentences.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["number", "negation", "name"]


@dataclass(frozen=True)
class MinimalPair:
    """`passage` supports `true` and not `false`."""

    kind: Kind
    passage: str
    true: str
    false: str


_PEOPLE = ("周文彬", "林秀兰", "何国栋", "沈佳怡", "欧阳明", "唐小梅", "罗建华", "宋雨晴", "程立新", "蒋思远")
_PLACES = ("青溪镇", "南浦区", "白石湾", "松林路", "东柳街道", "凤鸣村", "北岸新城", "桃源里", "金牛坝", "长乐桥")
_THINGS = ("年检", "退税申请", "住房补贴", "图书借阅", "停车许可", "体检报告", "会员续费", "装修备案")

_FORMS = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()]
"""Passages and statements with {p}, {q} for places, {a}, {b} for people, {t} for a thing, {m}, {n} for numbers; what
fills a statement's {x} truly, and what falsely."""


def minimal_pairs(count: int, seed: int = 20261130) -> list[MinimalPair]:
    """`count` pairs, the kinds in equal parts, the same for the same seed."""
    rng = random.Random(seed)
    found: list[MinimalPair] = []
    kinds: tuple[Kind, ...] = ("number", "negation", "name")
    while len(found) < count:
        kind = kinds[len(found) % 3]
        form = rng.choice([form for form in _FORMS if form["kind"] == kind])
        (p, q), (a, b) = rng.sample(_PLACES, 2), rng.sample(_PEOPLE, 2)
        m, n = rng.sample(range(3, 98), 2)
        values = {"p": p, "q": q, "a": a, "b": b, "t": rng.choice(_THINGS), "m": m, "n": n}
        true, false = (form["statement"].format(**values, x=form[x].format(**values)) for x in ("true", "false"))
        # A passage about others in front, so that the passage is no one-liner.
        people, places = rng.sample(_PEOPLE, 2), rng.sample(_PLACES, 2)
        if {p, q, a, b} & {*people, *places}:
            continue
        other = dict(zip("pqabtmn", (*places, *people, rng.choice(_THINGS), 41, 57), strict=True))
        around = rng.choice([f for f in _FORMS if f is not form])["passage"].format(**other)
        if other["t"] != values["t"]:
            found.append(MinimalPair(kind, around + form["passage"].format(**values), true, false))
    return found


TAX = (
    ("The taxpayer's identification number does not change when the company moves to another district; no new "
     "registration is needed.",
     "The identification number changes, and re-registration is needed."),
    ("公司迁往其他区后，纳税人识别号不变，无需重新登记。", "纳税人识别号会改变，需要重新登记。"),
)  # fmt: skip
"""(passage, statement) that contradict each other, in both languages."""
