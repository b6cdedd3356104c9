"""What is observed of a placement that is being built, and how it is rewarded."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from problems import constrained, fork_join
from strategies import problems
from streamsim import resource_loads
from streamsim._core import canonical
from streamsim.instance import with_constants_as_loads

from streamplace.learn.env import Environment
from streamplace.learn.reward import reward_of
from streamplace.model import Cluster, Problem


def walk(env, samples, seed):
    """Observations before every decision and after the last; devices are drawn among the open."""
    generator, seen = torch.Generator().manual_seed(seed), env.reset(samples)
    observed = [seen]
    while not env.done:
        noise = torch.rand(seen["open"].shape, generator=generator)
        seen = env.step(noise.masked_fill(~seen["open"], -1).argmax(-1))
        observed.append(seen)
    return observed


def simulated(problem, place, placed, last, coming):
    """What the simulator says of the placed operators [N], and streams of the operator to come."""
    instance, d = with_constants_as_loads(problem.instance), problem.n_devices
    inside = placed[instance.source] & placed[instance.target]
    part = instance._replace(
        load=instance.load * placed[:, None],
        tuples=instance.tuples * inside,
        traffic=instance.traffic * inside,
        **dict.fromkeys(("overhead", "overhead_per_byte", "gap"), 0.0),
    )
    loads = resource_loads(part, place)
    usual = instance.seconds_per_byte.sum() / max(d * (d - 1), 1)

    def by_device(chosen):
        """Flow of the chosen streams from each device."""
        rows = place[instance.source[chosen]], instance.traffic[chosen] * usual
        return np.bincount(rows[0], rows[1], minlength=d)

    upstream = np.unique(instance.source[placed[instance.source] & (instance.target == coming)])
    shares = np.bincount(place[upstream], minlength=d) / max(len(upstream), 1)
    return {
        "load": loads.devices,
        "link": loads.links,
        "flow": by_device(placed[instance.source] & (instance.target == coming)),
        "upstream": shares,
        "loose": by_device(placed[instance.source] & ~placed[instance.target]),
        "used": np.bincount(place[placed], minlength=d),
        "previous": 1.0 * (np.arange(d) == last),
    }


@given(st.lists(problems(), min_size=1, max_size=2), st.integers(0, 99))
def test_observations_are_what_the_simulator_says_of_the_placed_part(several, seed):
    """Before every decision, in padded batches too."""
    env = Environment.of(several)
    observed = walk(env, 2, seed)
    for g, problem in enumerate(several):
        n, d, placed = problem.n_operators, problem.n_devices, np.zeros(problem.n_operators, bool)
        place = env.placements[g, 1, :n].numpy().astype(np.int32)
        most = max(problem.instance.traffic.sum() * problem.instance.seconds_per_byte.max(), 1.0)
        last = -1
        for t, v in enumerate(env.batch.order[g, :n].tolist()):
            for name, wanted in simulated(problem, place, placed, last, v).items():
                found = observed[t][name][g, 1].numpy()
                found = found[:d, :d] if name == "link" else found[:d]
                assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6 * most), name
            placed[v], last = True, place[v]


@given(problems(), st.integers(0, 99))
@example(Problem(fork_join(3), Cluster.uniform(4)), 0)
def test_open_devices_obey_the_rules_and_are_numbered_by_first_use(problem, seed):
    env, classes = Environment.of([problem]), np.array(problem.interchangeable)
    observed = walk(env, 3, seed)
    place, order = env.placements[0].numpy().astype(np.int32), env.batch.order[0].numpy()
    if problem.rules is not None:
        assert problem.rules.allowed[problem.rules.unit[np.arange(len(order))], place].all()
        return
    assert (canonical(place, order.astype(np.int32), classes) == place).all()
    for t, seen in enumerate(observed[:-1]):
        unused = [d for d in range(len(classes)) if d not in place[0, order[:t]]]
        opened = [
            all(classes[other] != c for other in unused if other < d) for d, c in enumerate(classes)
        ]
        assert seen["open"][0, 0].tolist() == opened


def test_mates_are_followed_and_rivals_avoided():
    problem = constrained()
    env = Environment.of([problem])
    walk(env, 300, 0)
    assert problem.legal(env.placements[0].numpy().astype(np.int32)).mean() > 0.5


@pytest.mark.parametrize("objective", ["throughput", "makespan"])
@given(several=st.lists(problems(), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_rewards_are_those_of_repaired_placements(objective, several, seed):
    env, judge = Environment.of(several, objective=objective), reward_of(objective, "steady")
    walk(env, 2, seed)
    rewards = env.reward().tolist()
    for problem, placements, found in zip(several, env.placements.numpy(), rewards, strict=True):
        rows = np.ascontiguousarray(placements[:, : problem.n_operators].astype(np.int32))
        assert found == pytest.approx(judge(problem, problem.repaired(rows)), rel=1e-9)
