"""The course of a rolling score: its points are the windows' own sums, and all segments together are a series too."""

from __future__ import annotations

import re

import pytest

from consumer.pages import charts
from metrics.answer import ALL
from metrics.courses import POINTS, courses
from metrics.ranges import SHARE, SIMILARITY
from metrics.rolling import Rolling
from tests.score_records import score_record

NOW = 1_790_000_000.0
HOUR = 3600.0
HERE, THERE = ("helpdesk", "en"), ("shop", "en")


def filled() -> Rolling:
    rolling = Rolling({"1h": HOUR}, [HERE, THERE])
    for number in range(240):
        at = NOW - HOUR + number * 15.0 + 1
        value = 1.0 if number < 120 else 0.5
        rolling.add(score_record(number, at, {"faithfulness": value}), HERE if number % 2 else THERE, at, NOW)
    return rolling


def test_points_follow_the_scores_and_count_every_answer() -> None:
    found = {course.segment: course for course in courses(filled().slices(NOW, "1h"), NOW, HOUR)}
    assert set(found) == {HERE, THERE, (ALL, ALL)}
    whole = found[ALL, ALL]
    assert len(whole.points) == POINTS + 1
    assert sum(point.samples for point in whole.points) == 240
    assert sum(point.samples for point in found[HERE].points) == 120
    means = [point.mean for point in whole.points if point.mean is not None]
    assert means[0] == pytest.approx(1.0)
    assert means[-1] == pytest.approx(0.5)
    for point in whole.points:
        if point.mean is not None:
            assert point.low is not None
            assert point.high is not None
            assert 0.0 <= point.low <= point.mean <= point.high <= 1.0


def test_a_window_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled().slices(NOW, "7d")


def test_a_chart_stays_inside_its_box_and_says_what_it_shows() -> None:
    (course,) = (c for c in courses(filled().slices(NOW, "1h"), NOW, HOUR) if c.segment == (ALL, ALL))
    low, high = charts.bounds(course.points, 0.75, SHARE)
    drawn = str(charts.course(course.points, low, high, 0.75, 'a "label" <b>'))
    assert 'aria-label="a &#34;label&#34; &lt;b&gt;"' in drawn
    for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", drawn):
        assert 0 <= float(x) <= charts.WIDTH
        assert 0 <= float(y) <= charts.HEIGHT


def test_where_a_score_stands_in_a_distribution() -> None:
    histogram = [0.0] * SHARE.bins
    histogram[-1] = 90.0
    histogram[0] = 10.0
    assert charts.share_below(histogram, SHARE, 0.5) == pytest.approx(0.1)
    assert charts.share_below(histogram, SHARE, 1.0) == pytest.approx(0.1)
    assert charts.share_below(histogram, SHARE, 0.0) == 0.0, "the lowest score is above nobody"
    assert charts.share_below([0.0] * SHARE.bins, SHARE, 0.5) is None
    drawn = charts.distribution(histogram, SHARE, 0.5, 0.75, "x")
    assert drawn.count("<rect") == 2
    below_zero = [0.0] * SIMILARITY.bins
    below_zero[0] = 1.0
    assert "<rect" in charts.distribution(below_zero, SIMILARITY, -0.95, None, "x")
