"""Two placers on the same graphs: ratios with intervals, wins with a sign test."""

import json
from itertools import product
from math import comb, exp, lgamma, log, pi
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.evaluate.comparison import Comparison
from streamplace.evaluate.paired import (
    MAX_RESAMPLED,
    holm,
    interval_of_mean,
    paired,
    sign_test,
    signed_rank_test,
    student,
)
from streamplace.evaluate.records import Record
from streamplace.evaluate.results import ObjectiveResults
from streamplace.objectives.registry import OBJECTIVES

RNG = np.random.default_rng(0)


def records(placer, values):
    """Values of a placer on graphs 0, 1 and so on."""
    return [
        Record(f"{i:x}" * 8, str(i), 1e4, placer, "b", value, None, 1.0, (0,))
        for i, value in enumerate(values)
    ]


def comparison(**values):
    """Comparison of made-up placers by throughput; the reference is ``metis``."""
    results = ObjectiveResults(OBJECTIVES["throughput"])
    for placer, column in values.items():
        results.add(records(placer, column))
    return Comparison((results,), "metis")


def test_the_sign_test_is_the_sum_of_binomial_probabilities():
    """In exact integers, also where single probabilities are too small for a float."""
    for better, worse in ((0, 5), (1, 9), (30, 70), (48, 52), (400, 1600)):
        n, fewer = better + worse, min(better, worse)
        exact = min(1, 2 * sum(comb(n, i) for i in range(fewer + 1)) / 2**n)
        assert sign_test(better, worse) == pytest.approx(exact, rel=1e-9)
        assert sign_test(worse, better) == sign_test(better, worse)


def enumerated(differences):
    """P value of the signed-rank test by all signs of the differences, with Pratt's zeros."""
    sizes = np.abs(differences)
    ranks = np.array([(sizes < d).sum() + ((sizes == d).sum() + 1) / 2 for d in sizes])
    ranks, signs = ranks[differences != 0], np.sign(differences[differences != 0])
    drawn = np.array(list(product((0, 1), repeat=len(ranks)))) @ ranks
    found = ranks[signs > 0].sum()
    return min(1, 2 * min(np.mean(drawn <= found), np.mean(drawn >= found)))


@given(st.lists(st.integers(-4, 4), max_size=10))
def test_the_signed_rank_test_counts_all_signs(numbers):
    """Also where differences are equal or zero."""
    differences = np.array(numbers, float)
    assert signed_rank_test(differences) == pytest.approx(enumerated(differences))
    assert signed_rank_test(-differences) == signed_rank_test(differences)


def test_the_signed_rank_test_has_published_p_values():
    """Depression scores of Hollander and Wolfe, two tails of their 0.0195."""
    before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    assert signed_rank_test(before - after) == 0.0390625
    assert signed_rank_test(np.zeros(7)) == signed_rank_test(np.zeros(0)) == 1.0


def test_beyond_a_hundred_differences_rank_sums_are_normal(monkeypatch):
    """Within a tenth of the exact p value, with equal and zero differences."""
    differences = np.random.default_rng(1).integers(-20, 24, 160).astype(float)
    normal = signed_rank_test(differences)
    monkeypatch.setattr("streamplace.evaluate.paired.MAX_RANKED", 1000)
    assert normal == pytest.approx(signed_rank_test(differences), rel=0.1)
    assert 0.001 < normal < 0.2


def test_ranks_are_of_relative_differences():
    """A graph of large values has no more weight; infinite values and zeros have the last rank."""
    values, rivals = np.array([1e6, 2.0, 3.0, 4.0, 0.0, 1.0]), np.array([0.9e6, 1, 2, 3, 5, np.inf])
    pair, less = paired(values, rivals), paired(values, rivals, -1.0)
    ranked = np.array([1.0, 4, 3, 2, -5.5, -5.5])
    assert pair.signed_rank_test == less.signed_rank_test == pytest.approx(enumerated(ranked))


def test_wins_follow_the_sense_and_the_ratio_is_a_geometric_mean():
    """A placer that is twice as high on one graph and half as high on another is as good."""
    values, rivals = np.array([2.0, 1.0, 3.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])
    higher, lower = paired(values, rivals, 1.0), paired(values, rivals, -1.0)
    assert (higher.better, higher.equal, higher.worse) == (1, 1, 2)
    assert (lower.better, lower.equal, lower.worse) == (2, 1, 1)
    assert higher.ratio == lower.ratio == pytest.approx(0.75**0.25)
    assert higher.interval is None
    assert paired(np.array([0.0, 1.0]), np.array([0.0, 2.0])).ratio == pytest.approx(0.5**0.5)
    assert paired(np.array([0.0, 1.0]), np.ones(2)).ratio is None


@pytest.mark.parametrize("freedom", [*range(1, 62), 120, 300])
def test_quantiles_of_students_distribution_leave_a_fortieth_above_them(freedom):
    """By the integral of its density from 0 on, which is 0.475."""
    quantile = student(freedom)
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / (freedom * pi) ** 0.5
    x = np.linspace(0, quantile, 100_001)
    density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
    missing = 0.475 - np.trapezoid(density, x)
    assert abs(missing / density[-1]) < 1e-7


@pytest.mark.parametrize("graphs", [200, MAX_RESAMPLED + 1])
def test_intervals_are_those_of_the_mean_of_logarithms(graphs):
    """Resampled up to some number of graphs, of the normal distribution beyond."""
    logs = RNG.normal(0.02, 0.1, graphs)
    half = NormalDist().inv_cdf(0.975) * logs.std(ddof=1) / graphs**0.5
    interval = paired(np.exp(logs), np.ones(graphs)).interval
    assert [log(end) for end in interval] == pytest.approx(
        [logs.mean() - half, logs.mean() + half], abs=0.15 * half
    )


def test_intervals_are_the_same_in_every_process():
    """The bootstrap has a seed of its own; no clock, thread or hash has a part in it."""
    values = np.array([1.1, 0.9, 1.3, 1.0, 1.2, 1.4, 0.8])
    interval = (0.9368884418964383, 1.2358430194019872)
    assert paired(values, np.ones(7)).interval == pytest.approx(interval, rel=1e-12)


def test_pairs_are_matched_by_graph_and_their_order_makes_no_difference():
    a = records("a", [0.5, None, 0.9, 0.7, 0.4, 0.8, 0.6, 0.3])
    b = records("b", [0.4, 0.5, None, 0.7, 0.5, 0.6, 0.5, 0.2])
    forward = ObjectiveResults(OBJECTIVES["throughput"], a + b).paired[1e4]
    backward = ObjectiveResults(OBJECTIVES["throughput"], b[::-1] + a[::-1]).paired[1e4]
    pair = forward["a"]["b"]
    assert (pair.graphs, pair.better, pair.equal, pair.worse) == (6, 4, 1, 1)
    assert pair.interval is not None
    assert forward == backward
    assert forward["b"]["a"].ratio == pytest.approx(1 / (pair.ratio or 0))


def test_tables_json_and_python_have_the_same_statistics():
    """Against the reference in tables, against every placer in JSON, against any in Python."""
    result = comparison(metis=[0.5] * 8, best=[0.6] * 7 + [0.4], single=[0.1] * 7 + [None])
    ((_, _, _, best), (_, _, _, single)) = result.paired()
    rows = result.document()["rates"]["10000"]["placers"]
    assert rows["best"]["paired"]["metis"]["sign_test"] == best.sign_test == 0.0703125
    assert rows["single"]["paired"]["metis"]["graphs"] == single.graphs == 7
    assert rows["metis"]["paired"]["single"]["ratio"] == pytest.approx(5)
    json.dumps(rows, allow_nan=False)
    text = " ".join(str(result).split())
    assert "against metis + / = / − sign, Holm rank, Holm ratio 95 % interval" in text
    low, high = best.interval or (0, 0)
    tests = [best.sign_test, best.signed_rank_test, single.sign_test, single.signed_rank_test]
    sign, rank, *_ = (f"p = {p:.2g}" for p in holm(tests))
    assert f"best 7 / 0 / 1 {sign} {rank} {best.ratio:.4f} {low:.4f} to {high:.4f}" in text
    assert [placer for _, _, placer, _ in result.paired("best")] == ["metis", "single"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_corrected_p_values_reject_what_holms_steps_reject(p_values):
    """The k-th smallest of m is rejected while all up to it are at most 0.05 / (m + 1 - k)."""
    steps = enumerate(sorted(p_values))
    bars = [p <= 0.05 / (len(p_values) - k) for k, p in steps]
    rejected = bars.index(False) if False in bars else len(bars)
    corrected = sorted(holm(p_values))
    near = [abs(p - 0.05 / (len(p_values) - k)) < 1e-12 for k, p in enumerate(sorted(p_values))]
    if not any(near):
        assert sum(p <= 0.05 for p in corrected) == rejected


def test_the_interval_of_a_mean_holds_the_mean_and_narrows_with_graphs():
    values = np.random.default_rng(0).normal(1, 0.2, 400)
    few, many = interval_of_mean(values[:20]), interval_of_mean(values)
    assert many[0] < values.mean() < many[1]
    assert many[1] - many[0] < few[1] - few[0]
    assert interval_of_mean(values[:5]) is None
