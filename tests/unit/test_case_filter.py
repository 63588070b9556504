"""What a case is found by: flags and the like, and the same question or the same wrong statement as another one's."""

from __future__ import annotations

from dataclasses import replace

from consumer.case_filter import CaseFilter, named, newest_matching, sameness, terms_of
from tests.case_files import WRONG, audited, case_file


def test_cases_that_say_the_same_wrong_thing_are_found_by_it() -> None:
    one = case_file(1, 10.0)
    shouting = replace(one.statements[0], text=WRONG.upper().rstrip("."))
    other = case_file(2, 20.0, statements=(shouting,))
    different = case_file(3, 30.0, statements=(replace(one.statements[0], text="You have 29 days of paid leave."),))
    wanted = CaseFilter(says=sameness(WRONG))
    assert [case.record.id for case in newest_matching([one, other, different], wanted, None)] == [
        other.record.id,
        one.record.id,
    ]


def test_a_supported_statement_is_no_wrong_one() -> None:
    good = audited(1, 10.0)
    assert good.statements[0].label == "supported"
    assert not [term for term in terms_of(good) if term.startswith("says:")]


def test_the_same_question_and_a_contrast_label_choose_cases() -> None:
    old = case_file(1, 10.0, question="How many days?", record={"labels": {"model": "m-1"}})
    new = case_file(2, 20.0, question="how many DAYS", record={"labels": {"model": "m-2"}})
    both = CaseFilter(asks=sameness("How many days?"))
    assert len(newest_matching([old, new], both, None)) == 2
    assert newest_matching([old, new], replace(both, labels={"model": "m-2"}), None) == [new]


def test_numbers_make_another_statement() -> None:
    assert sameness("You have 28 days.") != sameness("You have 26 days.")
    assert sameness("年假有28天。") == sameness("年假有２８天")


def test_a_long_label_is_found_by_what_is_kept_of_it() -> None:
    case = case_file(1, 10.0, record={"labels": {"kb_version": "v" * 500}})
    assert newest_matching([case], CaseFilter(labels={"kb_version": "v" * 500}), None) == [case]


def test_an_event_from_the_future_counts_from_when_it_was_scored() -> None:
    """Dated 2099 by a broken clock, it would stand first in every list until it expires."""
    early, late = case_file(1, 1_000.0), case_file(3, 3_000.0)
    future = case_file(2, 4_070_908_800.0, record={"scored_time": 2_000.0, "trace_id": "trace-1"})
    found = [early, late, future]
    assert newest_matching(found, CaseFilter(), None) == [late, future, early]
    assert newest_matching(found, CaseFilter(since=1_500.0, until=2_500.0), None) == [future]
    assert newest_matching(found, CaseFilter(since=2_500.0), None) == [late]
    assert named([early, future, case_file(4, 2_500.0, record={"trace_id": "trace-1"})], "trace-1")[1:] == [
        future,
        early,
    ]
