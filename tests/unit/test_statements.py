"""Splitting answers into statements."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.outcome import Reason
from metrics.statements import MAX_STATEMENTS, claims_of, cleaned


def texts(answer: str) -> list[str]:
    return [statement.text for statement in claims_of(answer).statements]


# field case 25: text without a Western full stop, lists, tables, code
@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("您好！很高兴为您服务。全职员工每年有26天带薪年假。", ["全职员工每年有26天带薪年假。"]),
        ("很高興為您服務。", []),
        ("很高兴能帮到您。", []),
        ("Thanks for contacting HR. Leave is 26 days.", ["Leave is 26 days."]),
        ("Welcome to the HR help desk.", []),
        ("Leave is 26 days.\n\nBest regards, HR Team", ["Leave is 26 days."]),
        ("Welcome to the support service costs 5 euros.", ["Welcome to the support service costs 5 euros."]),
        ("很高兴为您服务的员工有三名。", ["很高兴为您服务的员工有三名。"]),
    ],
)
def test_a_help_desk_greets_without_claiming(answer: str, claims: list[str]) -> None:
    assert [s.text for s in claims_of(answer).statements] == claims


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Lima is the capital", ["Lima is the capital"]),
        ("Lima is the capital! Have you been there?", ["Lima is the capital!"]),
        ("返品は三十日以内です。送料は無料です。", ["返品は三十日以内です。", "送料は無料です。"]),
        (
            "Opening times:\n- weekdays from nine to five\n- never on Sundays\n\n"
            "| Day | Opens |\n|---|---|\n| Friday | 10:00 |",
            ["weekdays from nine to five", "Opening times: never on Sundays", "Day: Friday; Opens: 10:00"],
        ),
        ("المتجر مفتوح يوم الأحد. هل تريد المزيد؟ الدخول مجاني؛", ["المتجر مفتوح يوم الأحد.", "الدخول مجاني؛"]),
        ("दुकान रविवार को खुली है। प्रवेश निःशुल्क है।", ["दुकान रविवार को खुली है।", "प्रवेश निःशुल्क है।"]),
        ("| Lima |", ["Lima"]),
        ("| Capital |\n|---|\n| Lima |", ["Capital: Lima"]),
        ("* oat milk\n* brown sugar\n* two eggs", ["oat milk", "brown sugar", "two eggs"]),
    ],
)
def test_field_case_25_every_script_and_layout_keeps_its_statements(answer: str, expected: list[str]) -> None:
    claims = claims_of(answer)
    assert [s.text for s in claims.statements] == expected
    assert claims.reason is None


@pytest.mark.parametrize(
    "answer",
    [
        "```python\nprint(1)\n```",
        "~~~\nSELECT 1;\n~~~\n",
        "```\nunclosed",
        "def area(r):\n    return 3 * r;\n",
        "``` x = 1 ```",
    ],
)
def test_field_case_25_code_only_has_no_prose(answer: str) -> None:
    claims = claims_of(answer)
    assert claims.reason is Reason.NO_PROSE
    assert not claims.statements


@pytest.mark.parametrize("answer", ["The fee is five euros;", "退款需要七天;", 'He wrote the word down as {"fee"}'])
def test_a_mark_of_code_makes_no_code(answer: str) -> None:
    assert texts(answer) == [answer]


def test_prose_beside_code_counts_and_code_does_not() -> None:
    assert texts("Run the installer first.\n\n```sh\nmake install. Now. Please.\n```\n\nThen restart.") == [
        "Run the installer first.",
        "Then restart.",
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Dr. Ode paid $3.50 to A. B. Lund in the U.S. on Jan. 3. The rest followed, e.g. by post.",
         ["Dr. Ode paid $3.50 to A. B. Lund in the U.S. on Jan. 3.", "The rest followed, e.g. by post."]),
        ("Version 2.1.3 costs 1,000.50 euros. See https://shop.example/a.b?c=1. It ships today.",
         ["Version 2.1.3 costs 1,000.50 euros.", "See https://shop.example/a.b?c=1.", "It ships today."]),
        ('She said "Wait. Not yet" and left. "Fine." He stayed.',
         ['She said "Wait. Not yet" and left.', '"Fine."', "He stayed."]),
        ("He waited... and waited. Then it rained", ["He waited... and waited.", "Then it rained"]),
        ("Take vitamin C. It helps. Vitamins (B. and D.) do not.",
         ["Take vitamin C.", "It helps.", "Vitamins (B. and D.) do not."]),
        ("the shop is small. it opens at nine", ["the shop is small.", "it opens at nine"]),
        ("运费为3.5元。周末不发货！电话是多少？保修两年；电池除外。",
         ["运费为3.5元。", "周末不发货！", "保修两年；", "电池除外。"]),
        ("他说：“三天内退款。别急。”然后就走了。", ["他说：“三天内退款。别急。”然后就走了。"]),
        ("運費為三元。週末不出貨。", ["運費為三元。", "週末不出貨。"]),
    ],
)  # fmt: skip
def test_sentence_marks_that_end_nothing(answer: str, expected: list[str]) -> None:
    assert texts(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Based on the provided passages, the roast rests for one hour.", ["the roast rests for one hour."]),
        ("Passage 2 states that the fee is $75.", ["the fee is $75."]),
        ("According to the handbook the deposit is 300 euros.", ["the deposit is 300 euros."]),
        ("根据提供的资料，退款需要七天。", ["退款需要七天。"]),
        ("根據以上資料，退款需要七天。", ["退款需要七天。"]),
        ("Here are the steps to reset it:\n1. Hold the button.\n2. Wait.", ["Hold the button.", "Wait."]),
        ("## Returns\n\n**Deadline**\n\nReturns take ten days.\n\n---\n\n### Contact", ["Returns take ten days."]),
        ("Hello! Great question. The lift is out of order. I hope this helps! Let me know if you need anything else.",
         ["The lift is out of order."]),
        ("您好！感谢您的提问。电梯正在维修。希望对您有帮助，如有其他问题，请随时联系我们！", ["电梯正在维修。"]),
        ("Please feel free to call 555-0142 for help.", ["Please feel free to call 555-0142 for help."]),
        ("The lift is closed.\n\nSources:\n- https://wiki.example/lift\n- [Manual](https://wiki.example/m)",
         ["The lift is closed.", "Manual"]),
        ("Did you know that the lift carries nine people?", ["Did you know that the lift carries nine people?"]),
    ],
)  # fmt: skip
def test_boilerplate_is_no_statement(answer: str, expected: list[str]) -> None:
    assert texts(answer) == expected


CLAIMS = [
    "The bonus for a year is paid in April of the following year.",
    "It is delivered the following day.",
    "These rules apply to all employees.",
    "Here in Vienna, shops close at 6 pm.",
    "Below the age of 18 you cannot rent a car.",
    "Following the update, the price rose to 5 euros.",
    "The tenant pays the following costs himself.",
    "The steps are outlined below the sink.",
    "According to Dr Smith the drug is safe.",
    "I can provide a replacement card within two days.",
    "The warranty does not cover anything else.",
    "Members may feel free to bring a guest.",
    "The staff at the desk are happy to help with luggage.",
    "If you need help, the service desk is in building B.",
    "If you need more information, form B explains the tax rules.",
    "You must provide your details at the desk.",
    "Please send your details to the payroll office.",
    "Do not provide more information than the form asks for.",
    "26.",
    "$ 30",
    "from Monday",
    "Total = 45 euros",
    "hr@example.org",
    "以下人员可以免票。",
    "下列行为属于严重违纪。",
    "有效期三年，到期日如下。",
    "希望获得帮助的员工可以到三楼登记。",
    "产品没有任何问题。",
    "员工有任何问题可以向人事部提出。",
    "如有疑问，由工会负责解释。",
    "员工可以随时联系人事部。",
    "请提供您的身份证复印件。",
    "有更多需求的部门可以另行申请。",
]


@pytest.mark.parametrize("answer", CLAIMS)
def test_a_claim_that_sounds_like_courtesy_or_code_is_a_statement(answer: str) -> None:
    assert texts(answer) == [answer]


@pytest.mark.parametrize(
    "answer",
    [
        "Sure, here is a summary of the policy.",
        "I agree. That's really interesting!",
        "Yes, it does.",
        "Based on the passages provided, here's what I found:",
        "The key points are as follows:",
        "Please follow the following steps.",
        "According to the provided documents:",
        "Let me give you a quick overview.",
        "If you have any further questions, please don't hesitate to contact us.",
        "Should you need any assistance, contact our support team.",
        "I'd be happy to help.",
        "Please provide more details so I can help.",
        "根据您提供的资料，以下是相关信息：",
        "根据资料，流程如下。",
        "希望能帮到您！",
        "如果您有任何疑问，欢迎随时咨询。",
        "如果还有问题，请告诉我。",
        "请提供更具体的问题描述。",
    ],
)
def test_what_claims_nothing_is_no_statement(answer: str) -> None:
    assert claims_of(answer).reason is Reason.NO_CLAIMS


def test_emphasis_and_the_marks_of_a_list_hide_no_claim() -> None:
    assert texts("It is due in May.\n\n**The fee is 30 euros.**") == ["It is due in May.", "The fee is 30 euros."]
    assert texts("It is due in May.\n\n## Returns take ten days at most.") == [
        "It is due in May.",
        "Returns take ten days at most.",
    ]
    assert texts("- a valid passport;\n- two photos;") == ["a valid passport;", "two photos;"]


def test_statements_beyond_the_most_that_are_judged_are_counted() -> None:
    claims = claims_of(" ".join(f"Room {number} has a window." for number in range(MAX_STATEMENTS + 7)))
    assert (len(claims.statements), claims.left_out) == (MAX_STATEMENTS, 7)


def test_a_lead_in_travels_with_short_items_only() -> None:
    answer = "The desk is staffed on:\n- Monday\n- every second Tuesday of the month\n\nClosed otherwise."
    assert texts(answer) == ["The desk is staffed on: Monday", "every second Tuesday of the month", "Closed otherwise."]


@pytest.mark.parametrize(
    "lead",
    [
        "Based on the documents:",
        "Hello! Based on the provided documents:",
        "Hello, based on what you shared:",
        "According to the information in your files:",
        "Hi there! Here is what I found:",
        "Sure thing, I found the following:",
        "Great question — here's the info that you asked for:",
        "In summary:",
        "根据提供的资料：",
        "根據提供的資料：",
        "您好，门票信息如下：",
        "您好！很高兴为您服务，信息如下：",
        "好的，根据您上传的文件，我为您整理了以下内容：",
        "如下：",
        "以下是开放时间：",
    ],
)
def test_a_lead_in_that_greets_announces_or_points_at_its_source_is_not_glued(lead: str) -> None:
    assert texts(f"{lead}\n- Dogs are welcome.\n- 儿童免票\n") == ["Dogs are welcome.", "儿童免票"]


@pytest.mark.parametrize(
    ("lead", "glued"),
    [
        ("Part-time staff get:", "Part-time staff get"),
        ("Hello, part-time staff get:", "part-time staff get"),
        ("Hello! According to the handbook, part-time staff get:", "part-time staff get"),
        ("Based on seniority:", "Based on seniority"),
        ("In the first year:", "In the first year"),
        ("兼职员工享有：", "兼职员工享有"),
        ("您好，根据员工手册，兼职员工享有：", "兼职员工享有"),
        ("您好，兼职员工的年假，详情如下：", "兼职员工的年假"),
        ("您好，门票信息：", "门票"),
    ],
)
def test_of_a_mixed_lead_in_the_part_that_means_something_is_glued(lead: str, glued: str) -> None:
    assert texts(f"{lead}\n- twelve days\n") == [f"{glued}: twelve days"]


def test_what_a_lead_in_says_before_its_last_sentence_is_a_statement() -> None:
    assert texts("Thanks for asking. Dogs are welcome. Here is the rest:\n- Entry is free.\n") == [
        "Dogs are welcome.",
        "Entry is free.",
    ]


def test_a_lead_in_that_claims_a_number_is_a_statement() -> None:
    assert texts("The cover lasts 2 years and includes:\n- the screen and the hinge\n")[0].startswith(
        "The cover lasts 2"
    )


def test_rows_carry_their_header_and_their_own_span() -> None:
    answer = "| Plan | Price |\n|:--|--:|\n| Basic | 5 |\n| Pro | **9** |\n"
    found = claims_of(answer).statements
    assert [s.text for s in found] == ["Plan: Basic; Price: 5", "Plan: Pro; Price: 9"]
    assert [answer[s.start : s.end] for s in found] == ["| Basic | 5 |", "| Pro | **9** |"]


def test_a_repeated_statement_counts_once() -> None:
    assert texts("Entry is free. **Entry is free!** entry is  FREE. 入场免费。入场免费！") == [
        "Entry is free.",
        "入场免费。",
    ]


def test_wrapped_lines_are_one_sentence_and_short_lines_are_not() -> None:
    wrapped = (
        "The membership can be cancelled at any time before the end of the\ncurrent month by letter.\nNo fee applies."
    )
    assert texts(wrapped) == [
        "The membership can be cancelled at any time before the end of the current month by letter.",
        "No fee applies.",
    ]
    assert texts("Monday nine to five\nTuesday ten to six") == ["Monday nine to five", "Tuesday ten to six"]


def test_a_heading_that_is_the_whole_answer_is_a_statement() -> None:
    assert texts("**Lima**") == ["Lima"]


def test_reasoning_in_tags_is_left_out() -> None:
    assert texts("<think>\nMaybe Quito. Or Lima.\n</think>\nIt is Lima.") == ["It is Lima."]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "empty_answer"),
        (" \n\t", "empty_answer"),
        ("!!! ---", "no_claims"),
        ("Yes.", "no_claims"),
        ("Hello! How can I help you?", "no_claims"),
    ],
)
def test_why_there_is_no_statement(answer: str | None, reason: str) -> None:
    claims = claims_of(answer)
    assert claims.reason == Reason(reason)
    assert not claims.refusal


def test_cleaned_takes_off_markup_only() -> None:
    raw = "The **fee**<br> is [here](https://a.example/b) `42`[1][2, 3]【4†source】 and snake_case stays, 2 * 3 too."
    assert cleaned(raw) == "The fee is here 42 and snake_case stays, 2 3 too."


PIECES = [
    "Dr. A",
    ". ",
    "。",
    "\n",
    "| a | b |\n",
    "|---|---|\n",
    "```",
    "- ",
    "1. ",
    "“",
    '"',
    "(",
    "I don't know, but ",
]
PIECES += [
    "根据资料，",
    "The fee is 3.5 euros",
    "退款需要七天",
    "?",
    "…",
    "https://a.example/x.",
    "**",
    "# ",
    "<think>",
]
PIECES += ["</think>", "a@b.example", "；", " "]
fragments = st.sampled_from(PIECES)


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(fragments, max_size=30).map("".join)))
def test_any_answer_splits_into_ordered_spans_within_it(answer: str) -> None:
    claims = claims_of(answer)
    assert (claims.reason is None) == bool(claims.statements)
    previous = 0
    for statement in claims.statements:
        assert previous <= statement.start < statement.end <= len(answer)
        assert statement.text.strip()
        assert any(c.isalnum() for c in answer[statement.start : statement.end])
        previous = statement.end


HOSTILE = [
    "(",
    "`",
    "a.",
    "| ",
    "**",
    "- ",
    "“a",
    "根据",
    "\n",
    "I don't know, but ",
    "#",
    "[a](",
    "<a ",
    " ",
    "1.",
    "a\n",
]
HOSTILE += [
    "x",
    "http://",
    "_a",
    "based on ",
    "not ",
    "你好",
    "no information ",
    "- - ",
    "a@",
    "sorry ",
    ">",
    "[",
    "1,",
]
HOSTILE += ["in the ", "i ", "没有", "![", "a|\n", "\t-", "：\n"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    answer = piece * (200_000 // len(piece))
    started = time.process_time()
    claims_of(answer)
    assert time.process_time() - started < 5.0
