"""A Chinese question and its short answer as one statement: «谁发现了它？» and «王五» make «王五发现了它。»

What a passage says comes out in other words so, and a wrong answer in the same words: a network that is taught with
sentences as they stand learns to look for sentences as they stand.
"""

from __future__ import annotations

import re

LONGEST_ANSWER = 24

_TIME = r"(?:什[么麼][时時](?:候|[间間])|何[时時]|何年|哪一?[年天日]|[几幾]月[几幾][日号號]|[几幾]年)"
_WHO = r"(?:哪一?[位個个]人|谁|誰|何人)"
_WHERE = r"(?:哪[里裡裏儿兒]|何[处處地]|什[么麼]地方|哪[个個]地方)"
_COUNT = r"(?:多少|[几幾](?=[个個位名人所座家次种種条條部支本间間]))"
_KIND = r"哪一?(?:[个個些种種位家座所部条條支届屆本首间間次款项項])?"
_NOUN = (
    r"(?:国家|國家|城市|地区|地區|公司|大学|大學|学校|學校|组织|組織|民族|语言|語言|省份|行政区|行政區|球队|球隊|人物|作品|"
    r"朝代|時期|时期|月份|年份|国|國|人|省|市|县|縣|州|岛|島|河|山|队|隊)"
)
_PLACE = re.compile(rf"{_TIME}|{_WHO}|{_WHERE}|{_KIND}{_NOUN}|{_COUNT}")
"""What a question asks for by its kind, so that the answer stands in its place."""
_AT_END = re.compile(rf"(?:{_KIND}|什[么麼])[^，,、；;是有的]{{0,8}}$")
_NOT_SHORT = re.compile(
    r"为什[么麼]|為什[么麼]|为何|為何|怎[么麼样樣]|如何|为甚|為甚|原因|目的|区别|區別|[吗嗎]$|是否|多[长長久大高远遠]"
)
_ASKS = re.compile(r"什[么麼]|哪|谁|誰|何[时時年人处處地]|多少|[几幾][个個位名人月年]")


def told(question: str, answer: str) -> str | None:
    """The statement; None where the question is of no kind that can be told so.

    >>> told("《茶》是由谁写的？", "老张"), told("该桥属于什么类型？", "拱桥")
    ('《茶》是由老张写的。', '该桥属于拱桥。')
    >>> told("镇上有多少人？", "500人"), told("它为什么关闭？", "亏损")
    ('镇上有500人。', None)
    """
    asked = question.strip().rstrip("?？。 ")
    said = answer.strip().rstrip("。.")
    if not 0 < len(said) <= LONGEST_ANSWER or _NOT_SHORT.search(asked) or len(_ASKS.findall(asked)) != 1:
        return None
    if any(said[k : k + 3] in asked for k in range(len(said) - 3)):
        return None  # the answer is a sentence itself
    place = _PLACE.search(asked)
    if place:
        return asked[: place.start()] + _without_overlap(said, asked[place.end() :]) + "。"
    end = _AT_END.search(asked)
    return f"{asked[: end.start()]}{said}。" if end else None


def _without_overlap(answer: str, after: str) -> str:
    """The answer and what follows it, without saying the unit twice: «500人» before «人»."""
    for length in range(min(4, len(answer) - 1, len(after)), 0, -1):
        if answer.endswith(after[:length]):
            return answer + after[length:]
    return answer + after
