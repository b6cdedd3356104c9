"""DopplerModule: what its policies see and choose at every step, and their two forms."""

from typing import Any

import doppler_reference as literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from problems import PROBLEMS
from strategies import problems

from streamplace.learn.parameters import arrays_of
from streamplace.model import Problem
from streamplace.papers.doppler.episode import EpisodeRecord, new_record
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.policy import DopplerModule, PreparedProblem, choices, numbers_of
from streamplace.papers.families.chainmm import ChainMM, chainmm
from streamplace.papers.families.giph import Giph, giph

PAPER = next(iter(giph(Giph("multiple_networks", 1), seed=3)))
CHAIN = next(iter(chainmm(ChainMM(shards=1, devices=3), seed=0)))
NAMED = [PROBLEMS[n] for n in ("diamond", "heterogeneous", "disconnected", "lone")]
ALL = [PAPER, CHAIN, *NAMED, PROBLEMS["constrained"]]
SMALL: dict[str, Any] = {"width": 8, "hidden": 6, "rounds": 2}


def module(config: DopplerConfig) -> DopplerModule:
    """Random parameters that are nowhere zero."""
    found = DopplerModule(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for name, parameter in found.named_parameters():
            mean = 0.3 if name.endswith("bias") else 0.0
            torch.nn.init.normal_(parameter, mean, 0.4)
    return found


def ran(problem: Problem, config: DopplerConfig, share: float = 0.3, n: int = 2) -> Any:
    """Episodes: policies, what they outputs, what was seen, and the placements."""
    of, prepared = module(config), PreparedProblem.of(problem, config)
    outputs, record = prepared.outputs(of), new_record(prepared.features, n)
    numbers = numbers_of(np.random.default_rng(5), (n, problem.n_operators, 2), config, share)
    return of, outputs, record, prepared.run(outputs, config, numbers, record, taught=False)


def before(record: EpisodeRecord, i: int, t: int) -> list[tuple[int, int]]:
    """Tasks placed before a step, and where."""
    pair = record.done_task[i, :t].tolist(), record.done_device[i, :t].tolist()
    return list(zip(*pair, strict=True))


@pytest.mark.parametrize("problem", ALL)
def test_tasks_are_seen_by_costs_and_longest_paths(problem: Problem) -> None:
    """Appendix D.1, standardised."""
    seen = PreparedProblem.of(problem, DopplerConfig()).features.of_task
    assert seen == pytest.approx(literal.task_features(problem), abs=1e-6)


@pytest.mark.parametrize("looks", ["deviations", "seconds"])
@pytest.mark.parametrize("problem", ALL)
def test_devices_are_seen_by_what_runs_there_and_when(problem: Problem, looks: Any) -> None:
    """Appendix D.2, at every step of an episode, as differences from the mean device."""
    _, _, record, _ = ran(problem, DopplerConfig(looks=looks, **SMALL), n=1)
    unit = PreparedProblem.of(problem, DopplerConfig(looks=looks)).features.unit
    for t, v in enumerate(record.task[0].tolist()):
        plain = literal.device_features(problem, before(record, 0, t), v)
        scaled = np.stack([literal.standard(column) for column in plain.T], axis=1)
        if looks == "seconds":
            scaled = np.where(scaled == 0, 0.0, (plain - plain.mean(axis=0)) / unit)
        assert record.looks[0, t] == pytest.approx(scaled, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("problem", ALL)
def test_ready_tasks_are_those_whose_inputs_are_placed(problem: Problem) -> None:
    """Every task comes once, after all that feed it."""
    _, _, record, places = ran(problem, DopplerConfig(**SMALL))
    for i, place in enumerate(places):
        for t, v in enumerate(record.done_task[i].tolist()):
            done = {u for u, _ in before(record, i, t)}
            ready = {
                w
                for w in set(range(problem.n_operators)) - done
                if all(u in done for u, x in literal.ends(problem) if x == w)
            }
            assert set(np.flatnonzero(record.ready[i, t])) == ready
            assert v in ready
        if problem.rules is None:
            assert dict(before(record, i, problem.n_operators)) == dict(enumerate(place.tolist()))


@pytest.mark.parametrize("problem", ALL)
def test_choices_have_the_probabilities_of_the_equations(problem: Problem) -> None:
    """Torch for all steps at once, and the paper's definitions step by step, agree."""
    config = DopplerConfig(**SMALL)
    of, outputs, record, _ = ran(problem, config)
    found, tensors = choices(outputs, record, config, 0.0), arrays_of(of)
    h = literal.known(problem, tensors, config.rounds)
    for t in range(0, problem.n_operators, 3):
        ready = np.flatnonzero(record.ready[1, t]).tolist()
        v, a, is_open = int(record.task[1, t]), int(record.device[1, t]), record.open[1, t]
        tasks = literal.sel(problem, tensors, h, ready)
        looks = record.looks[1, t].astype(float)
        scores = literal.plc(problem, tensors, h, before(record, 1, t), v, looks)
        devices = literal.log_softmax(np.where(is_open, scores, -np.inf))
        wanted = tasks[ready.index(v)] + devices[a]
        assert float(found.log_p[1, t].detach()) == pytest.approx(wanted, abs=2e-3)
        some = devices[is_open]
        entropy = -(np.exp(tasks) * tasks).sum() - (np.exp(some) * some).sum()
        assert float(found.entropy[1, t].detach()) == pytest.approx(entropy, abs=2e-3)


@pytest.mark.parametrize("problem", ALL)
def test_the_likeliest_choices_are_those_of_the_highest_probability(problem: Problem) -> None:
    config = DopplerConfig(drawn="likeliest", **SMALL)
    _, outputs, record, _ = ran(problem, config, share=0.0)
    score, heads = outputs.score.detach().numpy(), choices(outputs, record, config, 0.0)
    ready = np.where(record.ready, score, -np.inf)
    assert (record.task == ready.argmax(axis=-1)).all()
    for a in range(problem.n_devices):
        other = record._replace(device=np.full_like(record.device, a))
        better = choices(outputs, other, config, 0.0).log_p - heads.log_p
        assert float(better.detach().max()) <= 1e-4


def test_choices_are_drawn_as_often_as_they_are_likely() -> None:
    problem, config = PROBLEMS["heterogeneous"], DopplerConfig(**SMALL)
    _, outputs, record, _ = ran(problem, config, share=0.0, n=10_000)
    likely = choices(outputs, record, config, 0.0).log_p[:, 0].detach().exp().numpy()
    chosen = record.task[:, 0] * problem.n_devices + record.device[:, 0]
    for choice in np.unique(chosen):
        mine = chosen == choice
        assert mine.mean() == pytest.approx(likely[mine][0], abs=0.03)


def test_what_explores_is_as_likely_as_it_is_done() -> None:
    """Half of the choices are made at random: the likelihood is that of the mixture."""
    config = DopplerConfig(select="topological", **SMALL)
    _, outputs, record, _ = ran(CHAIN, config)
    pure, mixed = (choices(outputs, record, config, share).log_p.detach() for share in (0.0, 0.5))
    wanted = 0.5 * pure.exp() + 0.5 / torch.from_numpy(record.open.sum(-1))
    assert mixed.exp().numpy() == pytest.approx(wanted.numpy(), rel=1e-4)


@pytest.mark.parametrize(("part", "others"), [("select", "plc_"), ("place", "sel_")])
def test_what_is_not_learned_leaves_its_head_alone(part: str, others: str) -> None:
    """Ablated, a policy's own parameters have no gradient, and the other's have."""
    rule = {"select": "critical-path", "place": "earliest"}[part]
    config = DopplerConfig.model_validate({part: rule, **SMALL})
    of, outputs, record, _ = ran(CHAIN, config)
    choices(outputs, record, config, 0.0).log_p.sum().backward()
    heads = {n: p.grad for n, p in of.named_parameters() if n.startswith(("sel_", "plc_"))}
    assert all((grad is not None) == name.startswith(others) for name, grad in heads.items())


def test_both_rules_together_are_the_critical_path_scheduler() -> None:
    """Longest path first, earliest start, with ties to the first; nothing is left to learn."""
    config = DopplerConfig(select="critical-path", place="earliest", **SMALL)
    prepared = PreparedProblem.of(CHAIN, config)
    of = module(config)
    place = prepared.greedy(prepared.outputs(of), config)
    done: list[tuple[int, int]] = []
    left = set(range(CHAIN.n_operators))
    length = [seconds for seconds, _ in literal.paths(CHAIN, to_exit=True)]
    while left:
        ready = [v for v in left if not {u for u, w in literal.ends(CHAIN) if w == v} & left]
        v = max(sorted(ready), key=length.__getitem__)
        a = int(np.argmin(literal.device_features(CHAIN, done, v)[:, 4]))
        done.append((v, a))
        left.remove(v)
        assert place[v] == a


def test_a_topological_order_can_select() -> None:
    _, _, record, _ = ran(CHAIN, DopplerConfig(select="topological", **SMALL))
    assert record.done_task[0].tolist() == CHAIN.graph.order.tolist()


@pytest.mark.parametrize("problem", ALL)
def test_the_teacher_is_asked_wherever_the_policies_lead(problem: Problem) -> None:
    """What is judged is the critical path's choice; what is done is the policies' own."""
    config = DopplerConfig(**SMALL)
    prepared, of = PreparedProblem.of(problem, config), module(config)
    outputs, record = prepared.outputs(of), new_record(prepared.features, 1)
    numbers = numbers_of(np.random.default_rng(2), (1, problem.n_operators, 2), config, 0.5)
    prepared.run(outputs, config, numbers, record, taught=True)
    length = [seconds for seconds, _ in literal.paths(problem, to_exit=True)]
    for t, v in enumerate(record.task[0].tolist()):
        ready = np.flatnonzero(record.ready[0, t])
        assert length[v] == pytest.approx(max(length[w] for w in ready))
        starts = literal.device_features(problem, before(record, 0, t), v)[:, 4]
        soonest = starts[record.open[0, t]].min()
        assert starts[record.device[0, t]] == pytest.approx(soonest)


@settings(max_examples=25)
@given(problem=problems(most=5))
def test_all_placements_are_legal(problem: Problem) -> None:
    """Whatever rules and memory there are."""
    assert problem.legal(ran(problem, DopplerConfig(**SMALL))[3]).all()
