"""Doppler: what its policies see and choose at every step, and their two forms.

Held against section 5.2 and appendix D of the paper in slow, plain Python.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from giph_reference import devices_of, ends, linear, log_softmax, seconds
from problems import PROBLEMS
from schedules_reference import ScheduleInProgress, longest_ways, mean_sending
from seeded import seeded

from streamplace.learn.parameters import arrays_of
from streamplace.learn.registry import MODELS
from streamplace.papers.doppler.episode import EpisodeStep, episodes
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.network import DopplerModule
from streamplace.papers.doppler.policy import choices, greedy, legal, numbers_of
from streamplace.papers.doppler.tensors import TaskTensors
from streamplace.papers.families.chainmm import ChainMM, chainmm
from streamplace.papers.families.giph import Giph, giph

pytestmark = pytest.mark.slow


@cache
def mean_seconds(problem):
    """Seconds of every task in the mean over devices."""
    return seconds(problem).mean(axis=1).tolist()


@cache
def paths(problem, *, to_exit):
    """Longest path from every task, to an exit or to an entry: its seconds, and its tasks."""
    return longest_ways(problem, mean_seconds(problem), to_exit=to_exit)


@cache
def task_features(problem):
    """Appendix D.1 [N, 5], each standardised."""
    computing, sent = mean_seconds(problem), mean_sending(problem)
    rows = [
        (
            computing[v],
            sum(sent[e] for e, (_, w) in enumerate(ends(problem)) if w == v),
            sum(sent[e] for e, (u, _) in enumerate(ends(problem)) if u == v),
            paths(problem, to_exit=True)[v][0],
            paths(problem, to_exit=False)[v][0],
        )
        for v in range(problem.n_operators)
    ]
    return np.stack([standard(column) for column in np.array(rows).T], axis=1)


def standard(values):
    """Mean 0 and deviation 1, or nothing where all are alike."""
    values = np.asarray(values, float)
    if not len(values) or values.std() <= 1e-9 * np.abs(values).max():
        return np.zeros_like(values)
    return (values - values.mean()) / values.std()


def device_features(problem, done, v):
    """Appendix D.2 [D, 5] of task v when these tasks were placed, in this order; unscaled."""
    schedule = ScheduleInProgress(problem, appends=True)
    for w, a in done:
        schedule.run(w, a)
    work = schedule.work
    rows = []
    for a in range(problem.n_devices):
        mine = [u for u, w in schedule.streams if w == v and schedule.place[u] == a]
        rows.append(
            (
                sum(work[w, a] for w, b in done if b == a),
                sum(work[u, a] for u in mine),
                min((schedule.start[u] for u in mine), default=0.0),
                max((schedule.finish[u] for u in mine), default=0.0),
                schedule.begin(v, a)[0],
            )
        )
    return np.array(rows)


def leaky(x):
    """Below 0 a tenth of it."""
    return np.where(x > 0, x, 0.1 * x)


def known(problem, tensors, rounds):
    """GNN(G, X) [N, W]: every round, all at once."""
    features, seconds = task_features(problem), standard(mean_sending(problem))
    h = [linear(tensors, "enter", x) for x in features]
    for _ in range(rounds):
        messages: list[list[Any]] = [[] for _ in h]
        for e, (u, v) in enumerate(ends(problem)):
            for a, b, sign in ((u, v, 1.0), (v, u, -1.0)):
                joined = np.concatenate([h[a], h[b], [seconds[e], sign]])
                messages[b].append(leaky(linear(tensors, "message", joined)))
        means = [np.mean(part, axis=0) if part else np.zeros_like(h[0]) for part in messages]
        pairs = zip(h, means, strict=True)
        h = [leaky(linear(tensors, "update", np.concatenate(pair))) for pair in pairs]
    return np.array(h)


def sel(problem, tensors, h, ready, factor):
    """Log-probabilities of the ready tasks; sums over paths are times a factor."""
    features = task_features(problem)
    scores = []
    for v in ready:
        ways = [paths(problem, to_exit=to_exit)[v][1] for to_exit in (False, True)]
        sums = [factor * sum(h[u] for u in path) for path in ways]
        joined = np.concatenate([h[v], *sums, linear(tensors, "sel_task", features[v])])
        scores.append(linear(tensors, "sel_out", leaky(linear(tensors, "sel_hidden", joined)))[0])
    return log_softmax(scores)


def plc(problem, tensors, h, placed, v, looks, factor):
    """Scores of all devices for task v, of which it sees these scaled features."""
    z = linear(tensors, "plc_task", task_features(problem)[v])
    scores = []
    for a in range(problem.n_devices):
        there = factor * sum((h[u] for u, b in placed if b == a), np.zeros(h.shape[1]))
        joined = np.concatenate([h[v], there, linear(tensors, "plc_device", looks[a]), z])
        scores.append(linear(tensors, "plc_out", leaky(linear(tensors, "plc_hidden", joined)))[0])
    return np.array(scores)


PAPER = next(iter(giph(Giph("multiple_networks", 1), seed=3)))
CHAIN = next(iter(chainmm(ChainMM(shards=1, devices=3), seed=0)))
NAMED = [PROBLEMS[n] for n in ("diamond", "heterogeneous", "disconnected", "lone")]
ALL = [PAPER, CHAIN, *NAMED, PROBLEMS["constrained"]]
RULED = ("little memory", "little memory and rules", "memory that is full, many sources")
SMALL: dict[str, Any] = {"width": 8, "hidden": 6, "rounds": 2}
PRESETS = {k: v.model.model_copy(update=SMALL) for k, v in MODELS["doppler"].presets.items()}


def module(config):
    """A network with random parameters."""
    return seeded(DopplerModule(config), 0.3, 0.4)


def ran(problem, config, share=0.3, n=2, seed=5, taught=False):
    """Episodes: policies, their outputs, what was seen, and the placements."""
    of, tensors = module(config), TaskTensors.of(problem)
    heads = of(tensors)
    numbers = numbers_of(np.random.default_rng(seed), (n, problem.n_operators, 2), config, share)
    steps = list(episodes(tensors, heads, config, numbers, taught=taught))
    record = EpisodeStep(*(torch.stack(parts, 1) for parts in zip(*steps, strict=True)))
    return of, heads, record, legal(problem, steps)


def arrays(record):
    """A record without the dimension of columns."""
    columns = {
        n: getattr(record, n)[..., 0] for n in ("task", "device", "done_task", "done_device")
    }
    return EpisodeStep(*(part.numpy() for part in record._replace(**columns)))


def before(record, i, t):
    """Tasks placed before a step, and where."""
    pair = record.done_task[i, :t].tolist(), record.done_device[i, :t].tolist()
    return list(zip(*pair, strict=True))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("problem", ALL)
def test_devices_are_seen_by_what_runs_there_and_when(problem, preset):
    """Appendix D.2, at every step of an episode, as differences from the mean device."""
    config = PRESETS[preset]
    record = arrays(ran(problem, config, n=1)[2])
    seconds = float(TaskTensors.of(problem).unit_s)
    for t, v in enumerate(record.task[0].tolist()):
        plain = device_features(problem, before(record, 0, t), v)
        scaled = np.stack([standard(column) for column in plain.T], axis=1)
        if config.device_unit == "seconds":
            scaled = np.where(scaled == 0, 0.0, (plain - plain.mean(axis=0)) / seconds)
        assert record.devices[0, t] == pytest.approx(scaled, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("problem", ALL)
def test_ready_tasks_are_those_whose_inputs_are_placed(problem):
    (_, _, record, places), streams = ran(problem, DopplerConfig(**SMALL)), ends(problem)
    record = arrays(record)
    for i, place in enumerate(places):
        for t, v in enumerate(record.done_task[i].tolist()):
            done = {u for u, _ in before(record, i, t)}
            ready = {
                w
                for w in set(range(problem.n_operators)) - done
                if all(u in done for u, x in streams if x == w)
            }
            assert set(np.flatnonzero(record.ready[i, t])) == ready
            assert v in ready
        if problem.rules is None:
            assert dict(before(record, i, problem.n_operators)) == dict(enumerate(place.tolist()))


def open_devices(problem, done, v):
    """Devices that rules leave to task v when these tasks were placed, if any."""
    rules, twins = problem.rules, problem.interchangeable.tolist()
    used = {a for _, a in done}
    empty = [a for a in range(problem.n_devices) if a not in used]
    first = {twins[a]: a for a in reversed(empty)}
    mine = sorted({*used, *first.values()})
    if rules is None:
        return mine
    home, unit = {rules.unit[w]: a for w, a in done}, rules.unit[v]
    if unit in home:
        return [home[unit]]
    rivals = {b for pair in rules.apart.tolist() if unit in pair for b in pair}
    closed = {home[b] for b in rivals if b in home}
    if rules.memory is not None:
        for a, room in enumerate(rules.room):
            full = sum(rules.memory[b] for b in home if home[b] == a)
            closed |= {a} if full + rules.memory[unit] > room * (1 + 1e-9) else set()
    return [a for a in mine if rules.allowed[unit, a] and a not in closed]


@pytest.mark.parametrize("problem", [*ALL, *(PROBLEMS[n] for n in RULED)])
def test_devices_are_open_as_the_rules_say(problem):
    """And only the first of equal empty ones; if none is, all that may run the task."""
    record = arrays(ran(problem, DopplerConfig(**SMALL), n=8)[2])
    for i in range(8):
        for t, v in enumerate(record.task[i].tolist()):
            found = np.flatnonzero(record.open[i, t]).tolist()
            wanted = open_devices(problem, before(record, i, t), v)
            if not wanted:
                assert found == devices_of(problem, v)
                break
            assert found == wanted


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("problem", ALL)
def test_choices_have_the_probabilities_of_the_equations(problem, preset):
    """Torch for all steps at once, and the paper's definitions step by step, agree."""
    config = PRESETS[preset]
    of, outputs, record, _ = ran(problem, config)
    found, tensors, record = choices(outputs, record, config, 0.0), arrays_of(of), arrays(record)
    h = known(problem, tensors, config.rounds)
    for t in range(0, problem.n_operators, 3):
        ready = np.flatnonzero(record.ready[1, t]).tolist()
        v, a, is_open = int(record.task[1, t]), int(record.device[1, t]), record.open[1, t]
        tasks = sel(problem, tensors, h, ready, config.sums)
        looks = record.devices[1, t].astype(float)
        scores = plc(problem, tensors, h, before(record, 1, t), v, looks, config.sums)
        devices = log_softmax(np.where(is_open, scores, -np.inf))
        wanted = tasks[ready.index(v)] + devices[a]
        assert float(found.log_p[1, t].detach()) == pytest.approx(wanted, abs=2e-3)
        some = devices[is_open]
        entropy = -(np.exp(tasks) * tasks).sum() - (np.exp(some) * some).sum()
        assert float(found.entropy[1, t].detach()) == pytest.approx(entropy, abs=2e-3)


@pytest.mark.parametrize("problem", ALL)
def test_the_likeliest_choices_are_those_of_the_highest_probability(problem):
    config = DopplerConfig(drawn="likeliest", **SMALL)
    _, outputs, record, _ = ran(problem, config, share=0.0)
    score, heads = outputs.score.detach().numpy(), choices(outputs, record, config, 0.0)
    ready = np.where(record.ready, score, -np.inf)
    assert (record.task[..., 0].numpy() == ready.argmax(axis=-1)).all()
    for a in range(problem.n_devices):
        other = record._replace(device=torch.full_like(record.device, a))
        better = choices(outputs, other, config, 0.0).log_p - heads.log_p
        assert float(better.detach().max()) <= 1e-4


def test_choices_are_drawn_as_often_as_they_are_likely():
    problem, config = PROBLEMS["heterogeneous"], DopplerConfig(**SMALL)
    _, outputs, record, _ = ran(problem, config, share=0.0, n=10_000)
    likely = choices(outputs, record, config, 0.0).log_p[:, 0].detach().exp().numpy()
    record = arrays(record)
    chosen = record.task[:, 0] * problem.n_devices + record.device[:, 0]
    for choice in np.unique(chosen):
        mine = chosen == choice
        assert mine.mean() == pytest.approx(likely[mine][0], abs=0.03)


def test_what_explores_is_as_likely_as_it_is_done():
    """Half of the choices are made at random: the likelihood is that of the mixture."""
    config = DopplerConfig(select="critical-path", **SMALL)
    _, outputs, record, _ = ran(CHAIN, config)
    pure, mixed = (choices(outputs, record, config, share).log_p.detach() for share in (0.0, 0.5))
    wanted = 0.5 * pure.exp() + 0.5 / record.open.sum(-1)
    assert mixed.exp().numpy() == pytest.approx(wanted.numpy(), rel=1e-4)


@pytest.mark.parametrize(("part", "others"), [("select", "plc_"), ("place", "sel_")])
def test_what_is_not_learned_leaves_its_head_alone(part, others):
    """Ablated, a policy's own parameters have no gradient, and the other's have."""
    rule = {"select": "critical-path", "place": "earliest"}[part]
    config = DopplerConfig.model_validate({part: rule, **SMALL})
    of, outputs, record, _ = ran(CHAIN, config)
    choices(outputs, record, config, 0.0).log_p.sum().backward()
    heads = {n: p.grad for n, p in of.named_parameters() if n.startswith(("sel_", "plc_"))}
    assert all((grad is not None) == name.startswith(others) for name, grad in heads.items())


def test_both_rules_together_are_the_critical_path_scheduler():
    """Longest path first, earliest start, with ties to the first; nothing is left to learn."""
    config = DopplerConfig(select="critical-path", place="earliest", **SMALL)
    place = greedy(module(config), CHAIN)[0]
    done: list[tuple[int, int]] = []
    left = set(range(CHAIN.n_operators))
    length = [seconds for seconds, _ in paths(CHAIN, to_exit=True)]
    while left:
        ready = [v for v in left if not {u for u, w in ends(CHAIN) if w == v} & left]
        v = max(sorted(ready), key=length.__getitem__)
        a = int(np.argmin(device_features(CHAIN, done, v)[:, 4]))
        done.append((v, a))
        left.remove(v)
        assert place[v] == a


@pytest.mark.parametrize("problem", ALL)
def test_the_teacher_is_asked_wherever_the_policies_lead(problem):
    """What is judged is the critical path's choice; what is done is the policies' own."""
    config = DopplerConfig(**SMALL)
    record = arrays(ran(problem, config, share=0.5, n=1, seed=2, taught=True)[2])
    length = [seconds for seconds, _ in paths(problem, to_exit=True)]
    for t, v in enumerate(record.task[0].tolist()):
        ready = np.flatnonzero(record.ready[0, t])
        assert length[v] == pytest.approx(max(length[w] for w in ready))
        starts = device_features(problem, before(record, 0, t), v)[:, 4]
        soonest = starts[record.open[0, t]].min()
        assert starts[record.device[0, t]] == pytest.approx(soonest)


@pytest.mark.parametrize("taught", [False, True])
@pytest.mark.parametrize("problem", [CHAIN, PROBLEMS["little memory and rules"]])
def test_episodes_and_likelihoods_stay_on_the_modules_device(problem, taught):
    """On the device ``meta``, on which nothing has a value that could be read."""
    config, meta = DopplerConfig(**SMALL), torch.device("meta")
    of, tensors = module(config).to(meta), TaskTensors.of(problem).to(meta)
    heads = of(tensors)
    numbers = torch.zeros(3, problem.n_operators, 2, device=meta)
    steps = list(episodes(tensors, heads, config, numbers, taught=taught))
    record = EpisodeStep(*(torch.stack(parts, 1) for parts in zip(*steps, strict=True)))
    assert choices(heads, record, config, 0.1).log_p.device == meta
