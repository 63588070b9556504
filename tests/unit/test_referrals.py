"""A refusal that sends the user elsewhere claims nothing; courtesy and pointers around an answer claim nothing too."""

from __future__ import annotations

import pytest

from metrics.statements import claims_of


@pytest.mark.parametrize(
    "answer",
    [
        "Unfortunately, the documents don't say how many days of leave there are. Please contact HR for details.",
        "I don't know. You may want to ask your manager.",
        "The context does not mention parental leave. I recommend contacting HR.",
        "I could not find that in the documents. For more information, please reach out to the payroll team.",
        "文档中没有提到。请联系人事部。",
        "文件未提及育嬰假。建議您洽詢人資部門。",
        "我不知道，建议您向主管咨询。",
        "記載がありません。人事部にお問い合わせください。",
        "There's nothing in the given text that tells how long it lasts.",
        "我找不到相關資料",
        "未提供",
    ],
)
def test_a_refusal_with_a_referral_is_a_refusal(answer: str) -> None:
    claims = claims_of(answer)
    assert claims.refusal, [s.text for s in claims.statements]


@pytest.mark.parametrize(
    ("answer", "statements"),
    [
        ("Returns are free. Please contact HR for details.", ["Returns are free.", "Please contact HR for details."]),
        ("I don't know. Please call 555-0199.", ["Please call 555-0199."]),
        ("I don't know. Please write to help@shop.example.", ["Please write to help@shop.example."]),
        (
            "The documents do not mention it. Please refer to the handbook, which lists all rates.",
            ["Please refer to the handbook, which lists all rates."],
        ),
        ("I don't know the price, but returns are free. Please contact support.", ["returns are free."]),
        ("员工找不到资料时请联系人事部。", ["员工找不到资料时请联系人事部。"]),
        ("There is nothing in the box.", ["There is nothing in the box."]),
    ],
)
def test_what_claims_something_beside_it_is_kept(answer: str, statements: list[str]) -> None:
    claims = claims_of(answer)
    assert [s.text for s in claims.statements] == statements
    assert not claims.refusal


@pytest.mark.parametrize(
    ("answer", "statements"),
    [
        ("Leave is 26 days. Have a wonderful day!", ["Leave is 26 days."]),
        ("Leave is 26 days. Enjoy the rest of your day!", ["Leave is 26 days."]),
        ("年假為26天。如有其他問題，請隨時告訴我。", ["年假為26天。"]),
        ("休暇は26日です。他に質問があればお知らせください。", ["休暇は26日です。"]),
        ("Hi Anna,\n\nLunch is at noon.", ["Lunch is at noon."]),
        ("Lunch is at noon. (See passage 2)", ["Lunch is at noon."]),
        ("答：年假为26天。", ["年假为26天。"]),
        ("Answer: Leave is 26 days.", ["Leave is 26 days."]),
        ("資料によると、休暇は26日です。", ["休暇は26日です。"]),
        ("Hi Tech Ltd. opens at nine.", ["Hi Tech Ltd. opens at nine."]),
        ("Hey Jude, a song of 1968, is loved by all.", ["Hey Jude, a song of 1968, is loved by all."]),
        ("See section 4 for the rates of pay.", ["See section 4 for the rates of pay."]),
    ],
)
def test_courtesy_and_pointers_are_no_statements(answer: str, statements: list[str]) -> None:
    assert [s.text for s in claims_of(answer).statements] == statements
