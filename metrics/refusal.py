"""Is this sentence a refusal: does the answer say that it does not know, rather than something about the world?

Only the speaker (I, we, 我) or the documents can refuse; «traders were unsure why» is a claim, and so is «we cannot
refund opened software». The phrases are in phrases.toml.
"""

from __future__ import annotations

import re

from metrics.language import simplified
from metrics.phrases import pattern

LONGEST = 400
"""Characters looked at: a refusal is short, and its patterns need not see a page."""

_REFUSING = pattern("refusal", "english", "chinese", "japanese")
_CONTRAST = pattern("refusal", "contrast")
_CONCESSION = pattern("refusal", "concession")
_REFERRAL = pattern("referral", "english", "chinese", "japanese")
_COMMA = re.compile(r"[,，]\s*")


def is_refusal(sentence: str) -> bool:
    """True where the sentence says that the answer is not known or not in the documents (English, Chinese, Japanese).

    >>> is_refusal("I couldn't find anything about your invoice.")
    True
    >>> is_refusal("Traders were unsure why, but some cited wages.")
    False
    """
    return bool(_REFUSING.search(simplified(sentence[:LONGEST]).strip()))


def is_referral(sentence: str) -> bool:
    """True where the sentence only sends the user to somebody else; one with a figure or an address claims something.

    >>> is_referral("Please contact HR for details."), is_referral("Please call 555-0199.")
    (True, False)
    """
    text = simplified(sentence[:LONGEST]).strip()
    return bool(_REFERRAL.match(text)) and "@" not in text and not any(c.isdigit() for c in text)


def clauses_beside(sentence: str) -> list[tuple[int, int]]:
    """Spans of the clauses of a refusing sentence that claim something after all.

    «I don't know the price, but returns are free» → the span of «returns are free»; a plain refusal → nothing.
    """
    text = simplified(sentence)  # as long as the sentence: character by character
    cuts = [m.span() for m in _CONTRAST.finditer(text, 0, LONGEST)]
    concession = _CONCESSION.match(text)
    if concession and (comma := _COMMA.search(sentence, concession.end(), LONGEST)):
        cuts.append(comma.span())
    if not cuts:
        return []
    spans = []
    begin = 0
    for low, high in [*sorted(cuts), (len(sentence), len(sentence))]:
        clause = text[begin:low]
        if clause.strip() and not is_refusal(clause) and not _CONCESSION.match(clause):
            spans.append((begin, low))
        begin = max(begin, high)
    return spans
