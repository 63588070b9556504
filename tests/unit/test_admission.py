"""The shedding controller, driven by a simulated scorer: no clock but the one passed in."""

import random
import re
from dataclasses import dataclass, field

import pytest

from consumer.admission import FLOOR, Admission, SheddingLog


@dataclass
class Simulation:
    """Arrivals at one rate, a scorer at another; queue, ages and what was admitted at which probability."""

    arrivals_per_second: float
    service_per_second: float
    max_delay: float
    admission: Admission = field(init=False)
    queue: list[float] = field(default_factory=list)
    weights: list[tuple[float, float]] = field(default_factory=list)
    arrived: int = 0

    def __post_init__(self) -> None:
        self.admission = Admission(self.max_delay)

    def run(self, seconds: float, *, age: float, start: float = 0.0, step: float = 0.05) -> None:
        generator = random.Random(5)
        now, owed, served = start, 0.0, 0.0
        while now < start + seconds:
            now += step
            owed += self.arrivals_per_second * step
            while owed >= 1:
                owed -= 1
                self.arrived += 1
                self.admission.arrived()
                share = self.admission.admitted_share(now, age, len(self.queue))
                unit = generator.random()
                if unit < share:
                    self.queue.append(now)
                    self.weights.append((unit, share))
            served += self.service_per_second * step
            done = min(len(self.queue), int(served))
            if done:
                served -= done
                del self.queue[:done]
                self.admission.served(done, done / self.service_per_second)
            elif not self.queue:
                served = 0.0


def test_within_capacity_nothing_is_shed_however_old_the_backlog() -> None:
    simulation = Simulation(arrivals_per_second=50, service_per_second=100, max_delay=60)
    simulation.run(60, age=10_000)
    assert len(simulation.weights) == simulation.arrived
    assert all(share == 1.0 for _, share in simulation.weights)


def test_fresh_overload_waits_on_the_topic_and_sheds_nothing() -> None:
    simulation = Simulation(arrivals_per_second=300, service_per_second=100, max_delay=60)
    simulation.run(20, age=5)
    assert len(simulation.weights) == simulation.arrived
    assert not simulation.admission.shedding


def test_old_overload_is_shed_to_what_can_be_scored_and_the_queue_stays_short() -> None:
    simulation = Simulation(arrivals_per_second=1000, service_per_second=100, max_delay=60)
    simulation.run(60, age=100)
    before = len(simulation.weights)
    simulation.run(60, age=100, start=60)
    admitted = len(simulation.weights) - before
    assert admitted / 60 < 110
    assert admitted / 60 > 85
    assert len(simulation.queue) < 3 * 2.0 * 100


def test_the_weighted_count_is_unbiased_while_shedding() -> None:
    """Sum of 1/p over the admitted estimates the arrivals: within 3 % of 120,000 (seed fixed)."""
    simulation = Simulation(arrivals_per_second=1000, service_per_second=100, max_delay=60)
    simulation.run(120, age=100)
    estimate = sum(1 / share for _, share in simulation.weights)
    assert abs(estimate / simulation.arrived - 1) < 0.03


def test_shedding_ends_when_the_load_does() -> None:
    simulation = Simulation(arrivals_per_second=1000, service_per_second=100, max_delay=60)
    simulation.run(30, age=100)
    assert simulation.admission.shedding
    simulation.arrivals_per_second = 20
    simulation.run(40, age=1, start=30)
    assert not simulation.admission.shedding


def test_the_share_never_reaches_zero() -> None:
    simulation = Simulation(arrivals_per_second=20_000, service_per_second=1, max_delay=1)
    simulation.run(10, age=100)
    assert min(share for _, share in simulation.weights) >= FLOOR


def test_shedding_is_told_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation(arrivals_per_second=400, service_per_second=100, max_delay=60)
    simulation.run(60, age=700)
    (begun,) = caplog.records
    assert begun.levelname == "WARNING"
    assert "events are 700 s old" in begun.message
    assert "max_delay_seconds is 60" in begun.message
    percent = re.search(r"; (\d+) % of what was sampled is scored now", begun.message)
    assert percent is not None
    assert 15 <= int(percent[1]) <= 35  # a quarter of what arrives can be scored
    simulation.arrivals_per_second = 20
    simulation.run(60, age=1, start=60)
    assert len(caplog.records) == 2
    ended = re.fullmatch(r"shedding ended after (\d+) s: every sampled event is scored again", caplog.messages[1])
    assert ended is not None
    assert 60 <= int(ended[1]) <= 90


def test_a_scorer_at_its_limit_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    told = SheddingLog(300.0)
    for second in range(1200):
        told.look(float(second), second % 40 < 20, 400.0, 0.0125)
    begun = [message for message in caplog.messages if message.startswith("shedding: ")]
    assert len(begun) == 4  # of 30
    assert "1.2 % of what" in begun[0]
    assert sum("ended" in message for message in caplog.messages) == 4


def test_a_shedding_shorter_than_its_share_takes_to_settle_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    told = SheddingLog(300.0)
    told.look(0.0, True, 400.0, 0.005)
    told.look(1.0, False, 4.0, 1.0)
    assert not caplog.records
