"""Refusals: in English, Chinese (both scripts) and Japanese, and what looks like one."""

from __future__ import annotations

import pytest

from metrics.outcome import Reason
from metrics.refusal import is_refusal
from metrics.statements import claims_of


# field case 21: no claims or refusal
@pytest.mark.parametrize(
    ("answer", "refusal"),
    [("IDK", True), ("Sure!", False), ("I couldn't find anything about your invoice. Anything else?", True)],
)
def test_field_case_21_no_claims_and_whether_it_refused(answer: str, refusal: bool) -> None:
    claims = claims_of(answer)
    assert claims.reason is Reason.NO_CLAIMS
    assert claims.refusal is refusal


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("I don't know the price, but returns are free for 30 days", "returns are free for 30 days"),
        ("我不知道价格，但是30天内可以免费退货。", "30天内可以免费退货。"),
        ("Although the passages do not mention the price, the plan includes roaming.", "the plan includes roaming."),
        ("我不清楚價格，不過退貨是要收費五十元的。", "退貨是要收費五十元的。"),
        ("雖然我不知道價格，退貨是免費的。", "退貨是免費的。"),
        ("文档中没有提到价格。保修期为两年。", "保修期为两年。"),
    ],
)
def test_field_case_21_a_refusal_beside_a_claim_is_one_claim(answer: str, claim: str) -> None:
    claims = claims_of(answer)
    assert [s.text for s in claims.statements] == [claim]
    assert [answer[s.start : s.end] for s in claims.statements] == [claim]
    assert not claims.refusal


REFUSALS = [
    "I don’t have enough information to answer that.",
    "I'm unable to provide details on this topic.",
    "Sorry, I can't help with that.",
    "Unfortunately, we could not find any record of your order.",
    "The provided context does not mention the opening hours.",
    "The passages do not specify who signed the lease.",
    "Based on the given documents, it is not possible to say.",
    "There is no information about parking in the documents.",
    "The answer is not mentioned in the provided text.",
    "I'm not sure.",
    "I have no idea",
    "I cannot confirm the date.",
    "I don't have access to your account.",
    "We do not have any information about that.",
    "The information provided does not mention the fee.",
    "The results do not contain information about the fee.",
    "There is no data available on this.",
    "There is no evidence in the passages that he left.",
    "The documents do not seem to have any information on it.",
    "This cannot be confirmed from the documents.",
    "The average cost of a second floor cannot be determined.",
    "No relevant information is available in the documents.",
    "Insufficient information to answer.",
    "由于资料未提及，无法回答。",
    "信息不足，无法回答。",
    "现有信息不足以回答该问题。",
    "文档里没有找到退款规定。",
    "对不起，未能查到您的订单。",
    "Unanswerable",
    "This cannot be determined from the passages.",
    "抱歉，我无法回答这个问题。",
    "根据提供的资料，无法确定保修期。",
    "很抱歉，没有找到相关信息。",
    "文档中未提及退款政策。",
    "我不清楚。",
    "目前暂无相关资料。",
    "上下文没有给出价格。",
    "抱歉，我無法回答這個問題。",
    "文件中沒有提到退款政策。",
    "根據現有資訊，無法判斷誰簽了合約。",
    "申し訳ありませんが、その情報は見つかりませんでした。",
    "資料には記載がありません。",
    "わかりません。",
    # found by a newcomer: the stock refusals of common prompts
    "根据已知信息无法回答该问题",
    "根据已知信息无法回答该问题，没有提供足够的相关信息。",
    "该问题无法回答",
    "抱歉，我无法从提供的资料中找到答案。",
    "我無法從提供的資料中找到答案。",
    "我无法从文档中找到相关信息。",
    "无法从上下文中得出答案。",
    "对不起，我没有这方面的信息。",
    "没有足够的信息来回答这个问题。",
    "未提及",
    "Unable to answer.",
    "No answer found.",
    "The answer is not in the provided context.",
    "The context provided does not answer the question.",
    "The passages do not answer the question.",
]

CLAIMS = [
    "Traders were unsure why, but some cited wages.",  # field case 29
    "We cannot refund opened software.",
    "The policy does not cover water damage.",
    "There is no information desk on the second floor.",
    "Customers who do not know their PIN can reset it online.",
    "You cannot find parking near the station on Sundays.",
    "The company did not provide a dividend in 2020.",
    "He could not answer the judge's question about the lease.",
    "No refunds are given after thirty days.",
    "The manual says that the valve is not needed.",
    "There is no evidence that the drug works.",
    "There is no data limit on this plan.",
    "The materials do not contain asbestos.",
    "The results do not include overtime.",
    "The information does not have to be renewed.",
    "The document does not have a signature.",
    "The warranty cannot be confirmed without an invoice.",
    "The cause of the fire cannot be determined before the inspection ends.",
    "Not available on Sundays.",
    "We have no data centers in Asia.",
    "We do not have access to the roof in winter.",
    "We cannot confirm bookings by phone.",
    "We do not provide data to third parties.",
    "No results were available before May 5.",
    "Insufficient data led the committee to postpone the vote.",
    "I don't know of any exceptions, the fee is always 5 euros.",
    "快递未找到收件人会退回。",
    "警方没有找到嫌疑人。",
    "系统没有找到匹配的账号时会自动注册。",
    "申请资料不足，无法受理。",
    "如果身份证过期，无法确认身份。",
    "该员工没有相关记录的，按新员工处理。",
    "没有发票，无法提供保修信息。",
    "我们不提供上门安装服务。",
    "公司没有提供免费停车位。",
    "未满18岁的用户无法注册账号。",
    "该药物不能与酒精同时服用。",
    "他不知道会议已经取消。",
    "我們無法退還已拆封的軟體。",
    "返品できません。",
    "超过七天不能退货。",
    "员工无法从财务部门领取现金。",
    "客户无法从网站中删除账户。",
    "该产品没有足够的内存来运行系统。",
    "我们没有这方面的限制。",
    "他没有提到价格。",
    "The refund is not in the price.",
    "The information is not part of the contract.",
    "Customers are unable to answer calls at night.",
    "Unable to answer calls at night, staff use the app.",
    "No results were published before 2020.",
]


@pytest.mark.parametrize("sentence", REFUSALS)
def test_refusals_are_recognised(sentence: str) -> None:
    assert is_refusal(sentence)
    assert claims_of(sentence).refusal


@pytest.mark.parametrize("sentence", CLAIMS)
def test_negative_claims_are_no_refusals(sentence: str) -> None:
    assert not is_refusal(sentence)
    assert len(claims_of(sentence).statements) == 1
