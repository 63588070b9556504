"""Quantiles of the beta distribution, without scipy (the monitor does not carry it)."""

from __future__ import annotations

import math

_TINY = 1e-300
_STEPS = 60


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x in [0, 1] with I_x(a, b) = p, for p in (0, 1) and a, b > 0; to about 1e-10.

    Newton's method on the logit of x, kept inside a bracket.
    """
    if a / (a + b) > 0.5:
        return 1.0 - _lower_quantile(1.0 - p, b, a)
    return _lower_quantile(p, a, b)


def _lower_quantile(p: float, a: float, b: float) -> float:
    """For a mean of at most one half, where x is the side that needs the digits."""
    constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    low, high = -690.0, 40.0
    mean, total = a / (a + b), a + b
    deviation = math.sqrt(mean * (1.0 - mean) / (total + 1.0))
    guess = min(max(mean + (2.0 if p > 0.5 else -2.0) * deviation, 1e-12), 1.0 - 1e-12)
    if a < 3.0 and p < 0.5:
        # In the lower tail I_x(a, b) is all but x**a / (a B(a, b)).
        guess = min(max(math.exp((math.log(p) + math.log(a) - constant) / a), 1e-290), guess if guess > 1e-9 else 0.5)
    logit = math.log(guess) - math.log1p(-guess)
    for _ in range(_STEPS):
        x = 1.0 / (1.0 + math.exp(-logit))
        log_x, log_y = -math.log1p(math.exp(-logit)), -math.log1p(math.exp(logit)) if logit < 30.0 else -logit
        value = incomplete_beta(x, a, b, constant)
        if value > p:
            high = logit
        else:
            low = logit
        # d I / d logit = x**a (1 - x)**b / B(a, b)
        density = math.exp(a * log_x + b * log_y + constant)
        step = (value - p) / density if density > 0.0 else math.inf
        if abs(step) < 1e-11 * max(abs(logit), 1.0):
            break
        following = logit - min(max(step, -4.0), 4.0)
        logit = following if low < following < high else (low + high) / 2.0
    return 1.0 / (1.0 + math.exp(-logit))


def incomplete_beta(x: float, a: float, b: float, constant: float | None = None) -> float:
    """The regularised incomplete beta function I_x(a, b); `constant` is -log B(a, b), where that is known.

    Continued fraction, evaluated by Lentz's method (Applied Optics 15, 1976).
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if constant is None:
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + constant)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    result = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        c = 1.0 + even / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        result *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        change = d * c
        result *= change
        if abs(change - 1.0) < 1e-12:
            break
    return result
