"""Does a model do what it should? Fixed texts in English and Chinese: order, known cosines, finite vectors."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from metrics.metric import Embedder, Text
from metrics.outcome import Unscored

TOLERANCE = 2e-3
"""Of a known cosine: above what another precision or processor does to it, far below what a wrong file does."""


@dataclass(frozen=True, slots=True)
class Trio:
    """A question, a passage that answers it, and one about something else."""

    language: str
    question: str
    answering: str
    unrelated: str


TRIOS = (
    Trio(
        "en",
        "How many days of paid leave do new employees get?",
        "Staff who join the company are entitled to twenty-five days of paid holiday in each calendar year. "
        "Days that are not taken by the end of March lapse.",
        "The printer on the third floor needs a new toner cartridge; spare ones lie in the cupboard next to the lift.",
    ),
    Trio(
        "zh",
        "新员工每年有多少天带薪年假？",
        "入职的员工每个日历年可享受十五天带薪休假，三月底之前没有休完的天数将作废。",
        "三楼的打印机需要更换墨盒，备用墨盒放在电梯旁边的柜子里。",
    ),
)
PASSAGES = (
    *(text for trio in TRIOS for text in (trio.question, trio.answering, trio.unrelated)),
    "To reset your password, open the account page, choose Security and follow the link that is sent to your address. "
    "The link is valid for thirty minutes. After five failed attempts the account is locked for an hour.",
    "A refund is paid to the card that the order was paid with. It takes three to five working days, and longer where "
    "the bank is abroad; shipping costs are refunded only if the parcel arrived damaged.",
    "Lithium batteries may be carried in hand luggage only. Each must be below one hundred watt-hours, its contacts "
    "covered, and no passenger may carry more than twenty of them.",
    "如需重置密码，请打开账户页面，选择“安全”，然后点击发送到您邮箱的链接。链接三十分钟内有效，连续五次输入错误后账户将被锁定一小时。",
    "退款将退回至下单时使用的银行卡，一般需要三到五个工作日；只有包裹在运输途中损坏时才退还运费。",
    "锂电池只能放在随身行李中，每块电池的容量不得超过一百瓦时，触点必须包好，每位乘客最多携带二十块。",
)
LONG = tuple(" ".join(group) for group in itertools.combinations(PASSAGES[6:], 3))[:6]
AGREEMENT = PASSAGES + LONG
"""Texts of 10 to 250 tokens on which two precisions are compared."""

KNOWN: Mapping[str, tuple[tuple[float, float], ...]] = {
    "1571fc982750": ((0.8736, 0.7418), (0.9212, 0.8027)),
    "53aa51172d14": ((0.6220, 0.0690), (0.7819, 0.5235)),
}
"""First 12 digits of a packaged model's revision: per trio, the cosine with the answering and the unrelated passage."""


def faults(embedder: Embedder, revision: str, languages: Collection[str] = ("en", "zh")) -> list[str]:
    """What is wrong with the model, one line each; empty when it passes.

    `revision`: its first 12 digits. `languages`: those that the model is meant for; other texts need only be finite.
    """
    texts: list[Text] = []
    for trio in TRIOS:
        texts += [Text("query", trio.question), Text("passage", trio.answering), Text("passage", trio.unrelated)]
    vectors = embedder.embed(texts)
    failed = [f"{t.content[:30]!r}: {v.reason}" for t, v in zip(texts, vectors, strict=True) if isinstance(v, Unscored)]
    if failed:
        return failed
    found = []
    arrays = [np.asarray(v, np.float64) for v in vectors]
    for array, text in zip(arrays, texts, strict=True):
        if array.shape != (embedder.dimension,) or not np.isfinite(array).all() or abs(array @ array - 1) > 1e-3:
            found.append(f"{text.content[:30]!r}: not a finite unit vector of {embedder.dimension} values")
    if found:
        return found
    for i, trio in enumerate(TRIOS):
        question, answering, unrelated = arrays[3 * i : 3 * i + 3]
        cosines = (float(question @ answering), float(question @ unrelated))
        if trio.language in languages and cosines[0] <= cosines[1]:
            found.append(f"{trio.language}: the unrelated text ({cosines[1]:.4f}) beats the answer ({cosines[0]:.4f})")
        for cosine, known in zip(cosines, KNOWN[revision][i] if revision in KNOWN else (), strict=False):
            if abs(cosine - known) > TOLERANCE:
                found.append(f"{trio.language}: cosine {cosine:.4f}, but this model's is {known:.4f}")
    return found
