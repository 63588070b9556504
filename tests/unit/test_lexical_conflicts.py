"""What the lexical judge calls a contradiction, and what only looks like one."""

from __future__ import annotations

import pytest

from metrics.event import Chunk
from metrics.judge import JudgeRequest, Statement
from metrics.lexical.judge import LexicalJudge
from metrics.lexical.kinds import Kind


@pytest.fixture(scope="module")
def judge() -> LexicalJudge:
    return LexicalJudge()


def kinds(judge: LexicalJudge, context: str, statement: str) -> set[Kind]:
    """The kinds of conflict between a statement and its best window."""
    request = JudgeRequest(None, (Statement(statement, 0, len(statement)),), (Chunk(context),))
    [examined] = judge.study(request).examined
    return {conflict.kind for conflict in examined.conflicts} - {Kind.SUBSTITUTION}


@pytest.mark.parametrize(
    ("context", "statement"),
    [
        # a negator that ends its clause denies nothing that follows
        ("The stain may come off. If not, wash the cover again.", "If the stain stays, wash the cover again."),
        ("Bikes fit on the rack, but scooters do not.", "Bikes fit on the rack, while scooters cannot."),
        ("Stamps can be sent by post but one cannot do so with coins.", "Stamps can be sent by post, coins cannot."),
        # what is supposed is not said
        ("If you cannot pay the fee, ask for a waiver.", "Residents have to pay the fee of the library."),
        ("We answer everybody, even those who do not pay us.", "We answer everybody, however much they pay us."),
        ("如果没有会员卡，请在前台付款。", "持会员卡可以在前台付款。"),
        # denied in other words than «not»
        ("Turn the pots, so that the roots do not dry out.", "Turn the pots to prevent the roots from drying out."),
        ("The bonus depends on sales, rather than on hours.", "The bonus depends on sales, not on hours."),
        ("Seed no 1 Okafor won.", "Okafor, the seed no 1, won the cup."),
        ("The cook didn ’ t have enough salt.", "The cook didn't have enough salt."),
        ("Rooms come with and without a balcony.", "Rooms come with a balcony."),
        ("Some guests are unable to climb the stairs.", "Some guests have difficulty climbing the stairs."),
    ],
)
def test_no_negation_where_both_sides_mean_the_same(judge: LexicalJudge, context: str, statement: str) -> None:
    assert kinds(judge, context, statement) == set()


@pytest.mark.parametrize(
    ("context", "statement"),
    [
        ("The stain comes off with water.", "The stain does not come off with water."),
        ("Scooters do not fit on the rack.", "Scooters fit on the rack."),
        ("If the alarm does not ring, leave the hall.", "If the alarm rings, leave the hall."),
        ("The gate opens when it rains.", "The gate does not open when it rains."),
        ("The filter does not prevent leaks.", "The filter prevents leaks."),
        ("如果没有会员卡，请在前台付款。", "如果有会员卡，请在前台付款。"),
    ],
)
def test_a_negation_that_only_one_side_has(judge: LexicalJudge, context: str, statement: str) -> None:
    assert Kind.NEGATION in kinds(judge, context, statement)


@pytest.mark.parametrize(
    ("context", "statement", "opposed"),
    [
        ("Tickets are nonrefundable.", "Tickets are non-refundable.", False),
        ("Tickets are nonrefundable.", "Tickets are non - refundable .", False),
        ("Tickets are refundable.", "Tickets are non-refundable.", True),
        ("The meal is safe for children.", "The meal is unsafe for children.", True),
        ("The nodes without labels learn labels.", "Labels of unlabelled nodes come from labelled nodes.", False),
        ("Rinse it with the unit closed.", "Rinse it with the lid closed.", False),
        ("Ask her for the keys of the flat.", "Ask here for the keys of the flat.", False),
        ("Ask her for the keys of the flat.", "Ask him or his aunt for the keys of the flat.", True),
        ("The rent is paid monthly.", "The rent is paid yearly.", True),
        ("The rent is due each month.", "The rent of the year is due each month.", False),
        ("The monthly fee includes insurance.", "The monthly fee excludes insurance.", True),
        ("All prices exclude VAT.", "All prices include VAT.", True),
        ("The fee includes parking but excludes insurance.", "The fee includes parking.", False),
    ],
)
def test_opposites(judge: LexicalJudge, context: str, statement: str, opposed: bool) -> None:
    assert (Kind.OPPOSITE in kinds(judge, context, statement)) is opposed


@pytest.mark.parametrize(
    ("context", "statement", "in_conflict"),
    [
        ("1 Heat the oven to the top mark. Salt the roast.", "Heat the oven with 3 trays.", False),
        ("The roast rests in the oven [4].", "The roast rests in the oven with 3 trays.", False),
        ("The roast rests in the oven with 4 trays.", "The roast rests in the oven with 3 trays.", True),
        ("12 trays rest in the oven.", "3 trays rest in the oven.", True),
    ],
)
def test_numbers_of_lines_and_notes_contradict_nothing(
    judge: LexicalJudge, context: str, statement: str, in_conflict: bool
) -> None:
    assert (Kind.NUMBER in kinds(judge, context, statement)) is in_conflict
