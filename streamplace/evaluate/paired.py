"""Two placers on the same graphs: ratio with a bootstrap interval, sign test, signed-rank test."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, exp, lgamma, log

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Floats

TIE, DECIMALS = 1e-9, 9
"""Relative difference of equal values, and decimals in which differences are equal."""
CONFIDENCE = 0.95
RESAMPLES = 5_000
"""Number of bootstrap samples; the ends of an interval vary by 4 % of its standard error."""
MIN_GRAPHS = 6
"""Graphs for an interval: no result on fewer is significant at 5 % by a sign test."""
MAX_RESAMPLED = 2_000
"""Maximum number of graphs to resample. Beyond, the mean is taken to be normal."""
NORMAL_QUANTILE = 1.959963984540054
"""97.5 % quantile of the standard normal distribution."""
STUDENT = (
    12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851,
    2.364624252, 2.306004135, 2.262157163, 2.228138852, 2.200985160, 2.178812830,
    2.160368656, 2.144786688, 2.131449546, 2.119905299, 2.109815578, 2.100922040,
    2.093024054, 2.085963447, 2.079613845, 2.073873068, 2.068657610, 2.063898562,
    2.059538553, 2.055529439, 2.051830516, 2.048407142, 2.045229642, 2.042272456,
)  # fmt: skip
"""97.5 % quantiles of Student's distribution for 1, 2, … degrees of freedom."""
MAX_RANKED = 100
"""Maximum number of differences for exact rank sums. Beyond, they are taken to be normal."""
BLOCK = 2**20
"""Drawn values in memory at a time."""


@dataclass(frozen=True, slots=True)
class Paired:
    """A placer compared with a rival on the graphs that both of them placed."""

    graphs: int  # number of these graphs
    # Number of graphs on which the placer is better than, equal to or worse than the rival.
    better: int
    equal: int
    worse: int
    # Two-sided p value of the sign test, which ignores equal graphs: the probability of numbers at
    # least as unequal if both placers were equally likely to be better.
    sign_test: float
    # Two-sided p value of Wilcoxon's signed-rank test of the relative differences.
    signed_rank_test: float
    # Geometric mean of value / rival's value over the graphs; None if a ratio is not positive and
    # finite, or without graphs.
    ratio: float | None
    # Ends of the 95 % interval of ``ratio``: percentiles of a bootstrap over graphs. None for fewer
    # than six graphs.
    interval: tuple[float, float] | None


def paired(values: Floats, rivals: Floats, sign: float = 1.0) -> Paired:
    """Compare the values of two placers on the same graphs; ``sign`` is -1 if less is better.

    Examples
    --------
    >>> import numpy as np
    >>> result = paired(np.array([2.0, 2, 2, 2, 2, 1]), np.ones(6))
    >>> result.better, result.equal, result.worse, result.sign_test, result.signed_rank_test
    (5, 1, 0, 0.0625, 0.0625)
    >>> round(result.ratio, 3), [round(end, 3) for end in result.interval]
    (1.782, [1.414, 2.0])
    """
    signs = compared(values, rivals, sign)
    better, worse = int((signs > 0).sum()), int((signs < 0).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(signs == 0, 1.0, values / rivals)
    logs = np.log(ratios) if bool((np.isfinite(ratios) & (ratios > 0)).all()) else np.empty(0)
    ends = interval_of_mean(logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        # of the larger value: symmetric, and in the order of |log ratio| for positive values
        shares = np.abs(values - rivals) / np.maximum(np.abs(values), np.abs(rivals))
    differences = signs * np.nan_to_num(shares, nan=1.0)  # an infinite value, or two zeros
    return Paired(
        graphs=len(signs),
        better=better,
        equal=len(signs) - better - worse,
        worse=worse,
        sign_test=sign_test(better, worse),
        signed_rank_test=signed_rank_test(differences),
        ratio=exp(float(logs.mean())) if len(logs) else None,
        interval=None if ends is None else (exp(ends[0]), exp(ends[1])),
    )


def compared(values: Floats, rivals: Floats, sign: float) -> Floats:
    """1 where the value is better than the rival's, 0 where it is equal, -1 where it is worse."""
    with np.errstate(invalid="ignore"):  # equal infinities
        deltas = sign * (values - rivals)
    # less than, as a finite value is not equal to an infinite one
    ties = (values == rivals) | (np.abs(deltas) < TIE * np.maximum(np.abs(rivals), np.abs(values)))
    signs: Floats = np.where(ties, 0.0, np.sign(deltas))
    return signs


def sign_test(better: int, worse: int) -> float:
    """Two-sided p value of the exact sign test.

    The number of wins of equally good rivals is binomial with probability 1/2; the p value is
    twice the probability of at most min(better, worse) wins, and at most 1.

    >>> sign_test(9, 1), sign_test(3, 3), sign_test(0, 0)
    (0.021484375, 1.0, 1.0)
    """
    n, fewer = better + worse, min(better, worse)
    if n == 0:
        return 1.0
    last = lgamma(n + 1) - lgamma(fewer + 1) - lgamma(n - fewer + 1) - n * log(2)
    below = np.arange(fewer, 0, -1, dtype=np.float64)
    terms = np.cumprod(below / (n - below + 1))  # each term of the sum relative to the last one
    return min(1.0, float(f"{2 * exp(last) * (1 + float(terms.sum())):.12g}"))


def signed_rank_test(differences: Floats) -> float:
    """Two-sided p value of Wilcoxon's signed-rank test.

    W is the sum of the ranks of |d| over all d > 0. If every d was as likely to be -d, each rank
    would be in the sum with probability 1/2. Zeros have ranks, which are in no sum (Pratt 1959);
    equal |d| share the mean of their ranks.

    >>> signed_rank_test(np.array([6.0, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]))
    0.041259765625
    """
    _, group, counts = np.unique(
        np.abs(differences).round(DECIMALS), return_inverse=True, return_counts=True
    )
    doubled = 2 * np.cumsum(counts) - counts + 1  # twice the mean rank of each group
    signed = (doubled[group] * np.sign(differences)).astype(np.int64)
    ranks, total = np.abs(signed[signed != 0]), int(np.abs(signed).sum())
    fewer = min(int(signed[signed > 0].sum()), int(-signed[signed < 0].sum()))
    if len(ranks) > MAX_RANKED:
        z = (total - 2 * fewer) / float(ranks @ ranks) ** 0.5
        return erfc(z / 2**0.5)
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        chances = (chances + np.concatenate([np.zeros(rank), chances[:-rank]])) / 2
    return min(1.0, float(f"{2 * chances[: fewer + 1].sum():.12g}"))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values of several tests, corrected by Holm's method.

    For equal placers, the probability that any value is at most 0.05 is at most 0.05, also for
    tests that depend on each other.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()


def interval_of_mean(values: Floats) -> tuple[float, float] | None:
    """Ends of the 95 % interval of a mean, by a bootstrap; None for fewer than six values."""
    if len(values) < MIN_GRAPHS or not np.isfinite(values).all():
        return None
    mean = float(values.mean())
    if len(values) > MAX_RESAMPLED:
        half = half_interval(values)
        return mean - half, mean + half
    means = np.concatenate([values[rows].mean(axis=1) for rows in _resamples(len(values))])
    low, high = np.quantile(means, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return float(low), float(high)


def half_interval(values: Floats) -> float:
    """Half of the 95 % interval of the mean of at least two values with a normal distribution.

    >>> round(half_interval(np.array([0.90, 0.92, 0.94])), 4)
    0.0497
    """
    return float(student(len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def student(freedom: int) -> float:
    """97.5 % quantile of Student's distribution; beyond the table by the series of Fisher (1926).

    The error is at most 3e-8.

    >>> student(2), round(student(40), 6), round(student(1000), 6)
    (4.30265273, 2.021075, 1.962339)
    """
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = NORMAL_QUANTILE
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


@lru_cache(maxsize=1)
def _resamples(n: int) -> tuple[NDArray[np.uint16], ...]:
    """Rows of graphs of every bootstrap sample, in blocks; the same for all pairs of placers."""
    rng = np.random.default_rng(n)
    size = max(1, BLOCK // n)
    starts = range(0, RESAMPLES, size)
    return tuple(
        rng.integers(n, size=(min(size, RESAMPLES - start), n), dtype=np.uint16) for start in starts
    )
