"""HSDAG: groups, rounds, and their two forms."""

import math

import numpy as np
import pytest
import torch
from constructive_cases import (
    ALL,
    NETS,
    PAPER,
    SMALL,
    assert_training_shortens_passes,
    hsdag_policy,
    learner_of,
    linear,
    one_hot,
    paper_options,
    sent_most,
    sigmoid,
    standard,
)
from giph_reference import ends
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import PROBLEMS
from strategies import problems as any_problem

from streamplace.errors import FormatError
from streamplace.model.random_numbers import torch_generator
from streamplace.objectives.registry import OBJECTIVES
from streamplace.papers.groups.nodes import Nodes, Traits, fractal_dimensions
from streamplace.papers.hsdag.policy import parse

pytestmark = pytest.mark.slow

Groups = list[set[int]]


def grown(edges, scores, n):
    """Groups as Algorithm 2 makes them: grown from the best edge left, until nothing joins."""
    left = set()
    for v in range(n):
        touching = [e for e, pair in enumerate(edges) if v in pair]
        if touching:
            left.add(max(touching, key=lambda e: (scores[e], -e)))
    groups: Groups = []
    while left:
        group = set(edges[max(left, key=lambda e: scores[e])])
        while more := {e for e in left if group & set(edges[e])}:
            left -= more
            group |= {v for e in more for v in edges[e]}
        groups.append(group)
    alone = set(range(n)).difference(*groups)
    return sorted([*groups, *({v} for v in alone)], key=min)


def perceptron(layers, x):
    """Two layers."""
    return linear(layers[2], np.maximum(linear(layers[0], x), 0))


def literally(policy, nodes, kept):
    """Groups and their distributions [D] in every round, by the module's equations."""
    module, n = policy.module, nodes.n_nodes
    edges = list(zip(*nodes.edges.tolist(), strict=True))
    units, stands_for = [{v} for v in range(n)], list(range(len(edges)))
    h = [perceptron(module.enter, x) for x in policy.scale.rows(nodes)]
    found = []
    for mask in kept:
        there = mask[stands_for]
        degree = [1 + sum(u == v for u, _ in edges) for v in range(n)]
        z = [(x - x.mean()) / np.sqrt(x.var() + 1e-5) for x in h]
        for hop in module.hops:
            sent = [linear(hop, x) for x in z]
            z = [
                np.maximum(
                    sum(
                        (
                            sent[u] / math.sqrt(degree[v] * degree[u])
                            for u in [v, *(w for s, w in edges if s == v)]
                        ),
                        np.zeros(module.config.width),
                    ),
                    0,
                )
                for v in range(n)
            ]
        some = [pair for pair, there_is in zip(edges, there, strict=True) if there_is]
        scores = [sigmoid(perceptron(module.score, z[v] * z[u])).item() for v, u in some]
        groups, best = grown(some, scores, n), [1.0] * n
        for v in range(n):
            best[v] = max((s for s, pair in zip(scores, some, strict=True) if v in pair), default=1)
        pooled = [np.mean([best[v] * z[v] for v in sorted(group)], axis=0) for group in groups]
        rows = []
        for group, x in zip(groups, pooled, strict=True):
            may, here = np.zeros(module.config.devices, bool), sorted(members(units, group))
            may[: nodes.problem.n_devices] = nodes.allowed[here].all(axis=0)
            if not may.any():
                may[: nodes.problem.n_devices] = nodes.allowed[here].any(axis=0)
            logits = np.where(may, perceptron(module.place, x), -np.inf)
            rows.append(logits - np.log(np.exp(logits).sum()))
        found.append(([members(units, group) for group in groups], rows))
        of = {v: x for group, x in zip(groups, pooled, strict=True) for v in group}
        h = [h[v] + of[v] for v in range(n)]
        if module.config.coarsened:  # lines 11 and 12: the groups are the nodes of the new state
            h = [np.mean([h[v] for v in sorted(group)], axis=0) for group in groups]
            units = [members(units, group) for group in groups]
            number = {v: c for c, group in enumerate(groups) for v in group}
            between: dict[tuple[int, int], int] = {}
            for (v, u), e in zip(edges, stands_for, strict=True):
                if number[v] != number[u]:
                    between.setdefault((number[v], number[u]), e)
            edges, n = sorted(between), len(groups)
            stands_for = [between[pair] for pair in edges]
    return found


def members(units, group):
    """Units of the nodes of a group."""
    return set().union(*(units[v] for v in group))


def fractal_dimension(v, edges, n):
    """Equation 4, from the nodes within every distance of v."""
    far = {v: 0}
    while more := {
        u: far[w] + 1 for a, b in edges for w, u in ((a, b), (b, a)) if w in far and u not in far
    }:
        far |= more
    radii = sorted(set(far.values()) - {0})
    if len(radii) < 2:
        return 0.0
    log_r = [math.log(r) for r in radii]
    log_n = [math.log(sum(distance <= r for distance in far.values())) for r in radii]
    mean_r, mean_n = np.mean(log_r), np.mean(log_n)
    shared = sum((x - mean_r) * (y - mean_n) for x, y in zip(log_r, log_n, strict=True))
    return shared / sum((x - mean_r) ** 2 for x in log_r)


def positional(pos, size=16):
    """Equation 5."""
    angles = [pos / 10000 ** (2 * i / size) for i in range(size // 2)]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


def features(problems):
    """Features [V, F] of every problem whose operators are nodes of their own (section 2.3)."""
    graphs = [(p, sorted(set(ends(p)))) for p in problems]
    kinds = sorted({kind for p in problems for kind in p.graph.operators.kind})
    degrees = [
        [[sum(edge[end] == v for edge in edges) for v in range(p.n_operators)] for end in (1, 0)]
        for p, edges in graphs
    ]
    known = [sorted({d for both in degrees for d in both[end]}) for end in (0, 1)]
    rows = []
    for (problem, edges), (d_in, d_out) in zip(graphs, degrees, strict=True):
        n, order = problem.n_operators, problem.graph.order.tolist()
        rows.append(
            [
                [
                    *one_hot(problem.graph.operators.kind[v], kinds),  # equation 3
                    *one_hot(d_in[v], known[0]),
                    *one_hot(d_out[v], known[1]),
                    fractal_dimension(v, edges, n),
                    *positional(order.index(v) + 1),
                    sent_most(problem, v),
                ]
                for v in range(n)
            ]
        )
    return standard(rows, [-1, -18])


def episode(problems, samples=7, seed=4, **changes):
    """Samples of problems side by side, their rounds, and the edges [T, E] present in each."""
    of = hsdag_policy(problems, **changes)
    batch = of.on(problems).batch(torch.arange(len(problems)))
    drawn = of.module(batch, samples, None, torch_generator(seed, of.device))
    edges, config = batch.graphs.edges.shape[1], of.module.config
    kept = (
        torch.rand(config.rounds, edges, generator=torch_generator(seed, of.device))
        >= config.dropout
    )
    return of, batch, drawn, of.module.rounds(batch.graphs, list(kept)), kept.numpy()


@given(st.data())
def test_groups_grow_as_in_the_paper(data):
    """From the best edge left, along the edges that somebody keeps, until nothing joins."""
    n = data.draw(st.integers(1, 9))
    pairs = [(v, u) for v in range(n) for u in range(v + 1, n)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    scores = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=len(edges)))
    scores = scores[: len(edges)]
    ends = np.array(edges, np.int64).reshape(-1, 2).T.copy()
    edge, group = (part.numpy() for part in parse(torch.from_numpy(ends), torch.tensor(scores), n))
    groups = [set(np.flatnonzero(group == g)) for g in range(group.max() + 1)]
    assert groups == grown(edges, [float(np.float32(s)) for s in scores], n)
    lonely = set(range(n)).difference(*map(set, edges))
    assert {v for v in range(n) if edge[v] == len(edges)} == lonely


def test_features_are_those_of_the_paper():
    """Kinds and degrees of equation 3, equation 4 and, as waves, equation 5; and what is sent."""
    of = hsdag_policy(NETS, **paper_options("hsdag", width=8))
    for problem, wanted in zip(NETS, features(NETS), strict=True):
        assert of.scale.rows(Nodes.units(problem)) == pytest.approx(wanted, abs=1e-6)


@given(st.data())
def test_fractal_dimensions_are_those_of_equation_4(data):
    """Of graphs in several parts, too."""
    n = data.draw(st.integers(1, 9))
    pairs = [(v, u) for v in range(n) for u in range(v + 1, n)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    found = fractal_dimensions(np.array(edges, np.int64).reshape(-1, 2).T.copy(), n)
    assert found == pytest.approx([fractal_dimension(v, edges, n) for v in range(n)], abs=1e-9)


def test_the_loss_is_that_of_equation_14():
    """-Σ γ^i r_i log p(P_i) over the steps of an episode, in the mean and with i from 0.

    Rewards are the inverse of the makespan, in multiples of a bound.
    """
    options = paper_options("hsdag", width=8)
    of, _, drawn, _, kept = episode([SMALL], options["on_policy"], seed=3, **options)
    config, placements = of.module.config, drawn.placements[0].numpy().astype(np.int32)
    latency = OBJECTIVES["makespan"].values(SMALL, placements)
    reward = OBJECTIVES["makespan"].bound(SMALL) / latency
    gained = 0.0
    for i, (groups, rows_of) in enumerate(literally(of, Nodes.units(SMALL), kept)):
        pairs = zip(groups, rows_of, strict=True)
        taken = sum(row[placements[i][min(group)]] for group, row in pairs)
        gained += config.discount**i * reward[i] * taken
    loss, _ = learner_of(of).loss(np.array([0]), 0, 3)
    assert float(loss.detach()) == pytest.approx(-gained / config.on_policy, rel=1e-4)


@pytest.mark.parametrize("coarsened", [False, True])
def test_choices_have_the_probabilities_of_the_equations(coarsened):
    """Groups and distributions of every round, and what samples of each round are worth."""
    of, batch, drawn, rounds, kept = episode(ALL, dropout=0.3, rounds=3, coarsened=coarsened)
    again = of.module(batch, 2, drawn.placements[:, 2:], torch_generator(4, of.device))
    assert torch.allclose(drawn.log_probability[:, 2:], again.log_probability[:, 2:])
    start = 0
    for g, problem in enumerate(ALL):
        nodes = Nodes.units(problem)
        edges = slice(start, start := start + nodes.edges.shape[1])
        for t, (groups, rows) in enumerate(literally(of, nodes, kept[:, edges])):
            group = rounds[t].group[batch.graphs.owner == g].numpy()
            assert groups == [set(np.flatnonzero(group == c)) for c in np.unique(group)]
            for s in range(t, 7, 3):
                by_node = drawn.placements[g, s][nodes.first].tolist()
                taken = sum(row[by_node[min(c)]] for c, row in zip(groups, rows, strict=True))
                assert drawn.log_probability[g, s].item() == pytest.approx(taken, abs=1e-3)
                some = [row[np.isfinite(row)] for row in rows]
                entropy = np.mean([-(np.exp(row) * row).sum() for row in some])
                assert drawn.entropy[g, s].item() == pytest.approx(entropy, abs=1e-3)
    assert drawn.weights[:4].tolist() == pytest.approx([1, 0.95, 0.95**2, 1])


def test_operators_of_a_group_go_together():
    """In the round that a sample is of; no operator with a stream is alone."""
    _, _, drawn, rounds, _ = episode(ALL, 6, dropout=0.0, rounds=3)
    for s, placement in enumerate(drawn.placements[0, :, : PAPER.n_operators].numpy()):
        group = rounds[s % 3].group[: PAPER.n_operators].numpy()
        assert np.bincount(group).min() >= 2
        for c in np.unique(group):
            assert len(set(placement[group == c])) == 1


def greedy(of, problems):
    """Likeliest placement of every problem."""
    return of.greedy(problems, of.on(problems))


@settings(max_examples=15)
@given(problem=any_problem(most=5))
def test_answers_are_legal(problem):
    (found,) = greedy(hsdag_policy([problem]), [problem])
    assert problem.legal(found)[0]


def test_answers_have_the_groups_of_the_whole_graph():
    """Groups of groups end as whole components, so that one device would get everything."""
    coarse = hsdag_policy(rounds=20, coarsened=True)
    fine = hsdag_policy(rounds=1)
    for problem, found in zip(ALL, greedy(coarse, ALL), strict=True):
        assert found.tolist() == greedy(fine, [problem])[0].tolist()


def test_problems_side_by_side_are_placed_as_one_by_one():
    of, every = hsdag_policy(list(PROBLEMS.values())), list(PROBLEMS.values())
    together = greedy(of, every)
    for problem, found in zip(every, together, strict=True):
        assert found.tolist() == greedy(of, [problem])[0].tolist()


def test_a_short_training_shortens_passes():
    one = learner_of(hsdag_policy([SMALL], width=32, dropout=0.0), on_policy=32)
    assert_training_shortens_passes(one, steps=40, rate=5e-3)


@pytest.mark.parametrize("name", ["wave 99999999", "wave 16", "in x", "pulse"])
def test_columns_that_no_training_made_are_refused(name):
    document = {"names": [name], "mean": [0.0], "std": [1.0]}
    with pytest.raises(FormatError, match=r"^w: "):
        Traits.from_document(document, "w")


def test_traits_can_be_left_out():
    """As in the ablations of Table 3."""
    whole = hsdag_policy().scale.names
    without = hsdag_policy(traits=("kind", "position", "output")).scale.names
    assert {name.split(" ")[0] for name in set(whole) - set(without)} == {
        *("in", "out", "fractal", "work")
    }
