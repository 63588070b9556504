"""Stories for the alerts on the error budget of flagged answers."""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.scenario import Scenario, growing, then
from deploy.prometheus.score_alerts import multiplier
from deploy.prometheus.score_scenarios import HOUR, MINUTE, OVER, UNDER, answers, segment
from deploy.prometheus.table import Row, Table


def budget_scenarios(table: Table) -> Iterator[Scenario]:
    yield from _budget(table)
    yield from _field_case_59(table)


def _budget(table: Table) -> Iterator[Scenario]:
    """Probability 1/20, so that weights and numbers of answers differ as they do in the field."""
    for name in ("FlaggedBudgetFast", "FlaggedBudgetMedium", "FlaggedBudgetSlow"):
        row = table.row(name)
        limit = multiplier(row.number("multiplier"), table.target) * (1 - table.target)
        long, short = row.seconds("long"), row.seconds("short")
        step = MINUTE if long <= HOUR else 5 * MINUTE if long <= 6 * HOUR else 20 * MINUTE
        yield from _burn(table, row, limit, long, short, step)


def _burn(table: Table, row: Row, limit: float, long: float, short: float, step: float) -> Iterator[Scenario]:
    own = segment(table)
    whole, least = int(long / step), row.number("samples")
    steps = 2 * whole
    everyone = [own, dict.fromkeys(table.segments, "all")]
    at = long + row.hold_off + 2 * step

    def story(title: str, count: float, share: float, fires: bool, exact: bool = False, at: float = at) -> Scenario:
        each = count / whole
        put = answers(own, growing(each, steps), growing(20 * each, steps), growing(20 * each * share, steps))
        return Scenario(row.name, title, put, at, everyone if fires else [], step=step, exact=exact)

    yield story("burns too fast", least * 4, limit * OVER, True, exact=True)
    yield story("burns fast enough to be seen, with just enough answers", least * OVER, limit * OVER, True)
    yield story("burns within the plan", least * 4, limit * UNDER, False)
    yield story("low traffic: too few answers", least * UNDER, limit * OVER, False)
    each, quiet = least * 4 / whole, int(2 * short / step)
    during = 20 * each * limit * 3
    over = then(growing(during, whole), growing(20 * each * limit * UNDER, quiet, start=during * whole))
    put = answers(own, growing(each, steps), growing(20 * each, steps), over)
    yield Scenario(row.name, "it is over: the short span is calm", put, long + quiet * step, [], step=step)
    fast, burst = 2 * limit, int(short / step)
    before = (UNDER * limit * long - fast * short) / (
        long - short
    )  # so that the long span as a whole is within the plan
    calm = int(at / step) - burst
    sudden = growing(20 * each * fast, burst, start=20 * each * (before * calm + fast))
    put = answers(own, growing(each, steps), growing(20 * each, steps), then(growing(20 * each * before, calm), sudden))
    yield Scenario(row.name, "it has just begun: the long span is within the plan", put, at, [], step=step)
    restarted = (then(growing(by, whole), growing(by, whole)) for by in (each, 20 * each, 20 * each * limit * OVER))
    yield Scenario(row.name, "the monitor was restarted meanwhile", answers(own, *restarted), at, everyone, step=step)


def _field_case_59(table: Table) -> Iterator[Scenario]:
    """0 scored; 3 scored and 1 bad; 400 scored and 60 bad; 5 % sampling of 100 events an hour. Only the third pages."""
    row = table.row("FlaggedBudgetMedium")
    step = 4 * MINUTE
    own, whole = segment(table), int(row.seconds("long") / step)
    at = row.seconds("long") + row.hold_off + 2 * step
    stories = {
        "0 scored (field case 59)": (0.0, 0.0, False),
        "3 scored, 1 bad (field case 59)": (3.0, 1.0, False),
        "400 scored, 60 bad (field case 59)": (400.0, 60.0, True),
        "5 % of 100 events an hour, all bad (field case 59)": (30.0, 30.0, False),
    }
    for title, (scored, bad, fires) in stories.items():
        put = answers(own, *(growing(n / whole, 2 * whole) for n in (scored, scored, bad)))
        expected = [own, dict.fromkeys(table.segments, "all")] if fires else []
        yield Scenario(row.name, title, put, at, expected, step=step)
