"""The preset ``paper-code``: the choices of the code that was published with the DREAM paper."""

import os
from types import SimpleNamespace

import dream_cases
import numpy as np
import pytest
import torch
from dream_cases import FIVE, MODELS, PROBLEMS, batch_of, drawn, log_probabilities, options
from histories import InterruptsEpoch, assert_same
from problems import chain, diamond, fork_join

import streamplace
from streamplace.errors import SettingError
from streamplace.learn.algorithms.baselines import favouring_gains
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import TrainingConfig
from streamplace.learn.constructive.memory import random_placements
from streamplace.learn.models.dream.additive import MaxPooling, neighbours
from streamplace.learn.models.dream.features import operator_features
from streamplace.learn.models.dream.model import AllocatorConfig
from streamplace.learn.models.dream.network import GraphEncoder
from streamplace.model import Problem

GRAPHS = (fork_join(6), diamond(), chain(4, payload=6e4), fork_join(3))
OURS = tuple(Problem(graph, FIVE) for graph in GRAPHS)


def learner_of(model, problems=OURS, **changes):
    return dream_cases.learner_of(model, "paper-code", problems, problems, **changes)


def test_graphsage_pools_the_maximum_of_the_neighbours():
    """Equal to a loop over operators, of which some have no neighbour."""
    torch.manual_seed(0)
    layer, batch = MaxPooling(3, 4), batch_of([PROBLEMS[3], PROBLEMS[1]])
    into = batch.streams.clamp(max=1)
    h = torch.randn(2, into.shape[1], 3)
    found = layer(h, into)
    for g in range(2):
        for v in range(into.shape[1]):
            messages = [layer.incoming(h[g, u]).relu() for u in torch.nonzero(into[g, v])[:, 0]]
            most = torch.stack(messages).amax(0) if messages else torch.zeros(8)
            expected = torch.cat([layer.own(h[g, v]), layer.pooled(most)])
            assert torch.allclose(found[g, v], expected, atol=1e-6)


def test_four_neighbours_at_most_are_drawn_anew_and_none_is_invented():
    joined = batch_of([OURS[0]]).streams.clamp(max=1)
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([neighbours(joined, generator) for _ in range(50)])
    assert (draws <= joined).all()
    assert (draws.sum(3).amax(0) == joined.sum(2).clamp(max=4)).all()
    assert ((draws.sum(3) > 0) == (joined.sum(2) > 0)).all()
    assert torch.equal(draws.amax(0), joined)
    assert torch.equal(neighbours(joined, None), joined)


def test_operators_are_vectors_of_length_one():
    torch.manual_seed(0)
    config = options("dream", pooling="max")
    batch = batch_of(PROBLEMS)
    features = torch.randn(*batch.present.shape, len(config.features))
    nodes, graph = GraphEncoder(config)(features, batch, None)
    assert nodes.shape == (*batch.present.shape, 8)
    length = nodes.norm(dim=2)  # 0 if no ReLU of a tiny network is above 0
    assert torch.minimum(length, (length - 1).abs()).max().item() < 1e-5
    assert length.mean().item() > 0.5
    assert torch.isfinite(graph).all()


def literal(learner, problem, row):
    """Probabilities [N, D] along a placement, one operator after the other."""
    module, decoder = learner.module, learner.module.decoder
    batch = batch_of([problem], "topological")
    features = ((operator_features(batch, module.names) - module.mean) / module.std).float()
    nodes, graph = module.encoder(features, batch, None)
    state, cell = graph[0], torch.zeros_like(graph[0])
    wire, along, found = 8 / 1e9, decision_order(problem, "topological").tolist(), {}
    for t, v in enumerate(along):
        gates = decoder.read(nodes[0, t]) + decoder.recurrent @ state
        if decoder.devices is not None:
            total = torch.zeros(8)
            instance = problem.instance
            for u, w, b in zip(instance.source, instance.target, instance.traffic, strict=True):
                if w == v:
                    total = total + float(b * wire) * decoder.devices[row[u]]
            gates = gates + decoder.read_upstream(total)
        i, f, o, g = gates.chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
        hidden = state
        if decoder.query is not None:
            scores = [decoder.score(torch.tanh(decoder.query(state) + h)) for h in nodes[0]]
            hidden = torch.cat([state, torch.cat(scores).softmax(0) @ nodes[0]])
        found[v] = decoder.output(hidden).softmax(0)
    return torch.stack([found[v] for v in range(problem.n_operators)])


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_fit_the_equations(model):
    """Weighted sum of the devices upstream in F2, additive attention, and none of both in B."""
    learner = learner_of(model)
    assert (learner.module.decoder.query is None) == (model == "encdec")
    for problem in OURS[1:]:
        row = [0, 1, 0, 2, 2, 1, 3, 0, 1][: problem.n_operators]
        given = torch.tensor([[row]])
        found = learner.module(batch_of([problem], "topological"), 0, given)
        expected = literal(learner, problem, found.placements[0, 0].tolist())
        taken = expected[torch.arange(len(row)), found.placements[0, 0]].log().sum()
        assert found.log_probability[0, 0].item() == pytest.approx(taken.item(), abs=1e-5)
        spread = -(expected * expected.log()).sum() / len(row)
        assert found.entropy[0, 0].item() == pytest.approx(spread.item(), abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_only_f2_depends_on_devices_chosen_before(model):
    module, batch = learner_of(model).module, batch_of([OURS[0]], "topological")
    found = log_probabilities(module, batch, drawn(module, batch, 9))
    assert torch.allclose(found, found[:, :1]) == (model != "dream")


def test_all_devices_are_open_and_placements_are_renumbered():
    """A draw may begin on any device; the likelihood is that of the renumbered placement."""
    learner, batch = learner_of("dream"), batch_of(OURS, "topological")
    placements = drawn(learner.module, batch, 200)
    assert set(placements[:, :, 0].flatten().tolist()) == {0, 1, 2, 3, 4}
    named = batch.canonical(placements)
    assert torch.equal(learner.module(batch, 0, placements).placements, named)
    assert set(named[:, :, 0].flatten().tolist()) == {0}


def learnt(learner, row, epoch, seed=0):
    """Placements, rewards, what is learned from, and the loss's weights of a step."""
    notes = SimpleNamespace(drawn=[], of=[], given=None, weights=None)
    remember, loss = learner._remember, learner._loss

    def remembered(numbers, env, placements, count=None):
        rewards = remember(numbers, env, placements, count)
        notes.drawn.append(env.batch.canonical(placements)[0].tolist())
        notes.of.append(rewards[0].tolist())
        return rewards

    def lost(decisions, weights, *rest):
        notes.given, notes.weights = decisions.placements[0].tolist(), weights[0].tolist()
        notes.log_p = decisions.log_probability[0].detach()
        return loss(decisions, weights, *rest)

    learner._remember, learner._loss = remembered, lost
    try:
        learner.loss(np.array([row]), epoch, seed)
    finally:
        del learner._remember, learner._loss
    return notes


def test_a_step_is_that_of_the_published_code():
    """Its samples, what is replayed, the baseline, gains tenfold, duplicates and exploration."""
    learner = learner_of("dream")
    for row in range(len(OURS)):
        memory: dict[tuple[int, ...], float] = {}
        for epoch in range(4):
            notes = learnt(learner, row, epoch, seed=epoch)
            best = max(memory.values(), default=0.0)
            count = 20 if best < 0.99 else (20, 7, 3, 1)[epoch]
            for rows, rewards, many in zip(notes.drawn, notes.of, (count, 10), strict=True):
                for one, reward in list(zip(map(tuple, rows), rewards, strict=True))[:many]:
                    memory.setdefault(one, reward)
            ranks = sorted(memory.values(), reverse=True)
            good = [rank for rank in ranks[:5] if rank >= 0.8] or ranks[:1]
            own, once = list(map(tuple, notes.drawn[1])), set[tuple[int, ...]]()
            first = [not (one in once or once.add(one)) for one in own]
            rewards = [reward for reward, new in zip(notes.of[1], first, strict=True) if new]
            leading = ranks[: max(2 * len(good) - 1, 2)]
            baseline = np.mean(rewards if epoch == 0 else leading)
            samples = rewards + good
            gains = [10 * a if a > 0 else a for a in np.array(samples) - baseline]
            counted = [*first, *(k < len(good) for k in range(5))]
            found = [w for w, used in zip(notes.weights, counted, strict=True) if used]
            assert found == pytest.approx(np.array(gains) / len(samples), abs=1e-9)
            assert not any(w for w, used in zip(notes.weights, counted, strict=True) if not used)
            assert [memory[tuple(one)] for one in notes.given[10:][: len(good)]] == good


def test_losses_of_what_has_become_impossible_do_not_count():
    weights, log_p = torch.tensor([[-1.0, -1.0, 2.0, 2.0]]), torch.tensor([[-9.0, -200, -9, -200]])
    assert favouring_gains(weights, log_p, 10.0).tolist() == [[-1, 0, 20, 20]]


def test_a_reward_may_be_divided_by_the_devices_in_use():
    """Padding operators use none; validation judges by the throughput all the same."""
    learner = learner_of("dream", per_device=True)
    numbers = torch.arange(len(OURS))
    env = learner._environment(numbers)
    placements = drawn(learner.module, batch_of(OURS, "topological"), 6)
    shared = learner._judged(env, placements)[1]
    for i, problem in enumerate(OURS):
        for row, reward in zip(placements[i], shared[i], strict=True):
            own = row[: problem.n_operators].int().numpy()
            value = learner.reward(problem, own[None])[0]
            assert reward.item() == pytest.approx(value / len(set(own.tolist())))
    placed = learner.policy.place_many(OURS)
    values = [learner.reward(p, one.index[None])[0] for p, one in zip(OURS, placed, strict=True)]
    assert learner.validate().tolist() == pytest.approx(values)


def test_a_decision_may_read_the_loads_of_devices():
    module, batch = (
        learner_of("encdec", utilisation=True).module,
        batch_of([OURS[2]], "topological"),
    )
    found = log_probabilities(module, batch, torch.tensor([[[0, 0, 0, 0], [0, 1, 0, 0]]]))[0]
    assert torch.allclose(found[0, :2], found[1, :2])
    assert not torch.allclose(found[0, 2], found[1, 2])


def test_random_placements_may_be_uniform_over_all():
    """So five operators hardly ever share a device; otherwise a fifth of the placements does."""
    batch, problem = batch_of([PROBLEMS[1]]), PROBLEMS[1]
    generator = torch.Generator().manual_seed(0)
    found = random_placements(batch, 4000, generator, "placements")[0]
    assert problem.n_operators == found.shape[1] == 5
    every, counts = torch.unique(found, dim=0, return_counts=True)
    assert len(every) > 2000
    assert counts.max() < 12
    assert [(found == d).float().mean(0).tolist() for d in range(5)] == [
        pytest.approx([0.2] * 5, abs=0.03)
    ] * 5


def test_options_that_do_not_go_together_are_one_line():
    training = TrainingConfig()
    with pytest.raises(SettingError, match=r"^[^\n]*additive[^\n]*device_state[^\n]*$"):
        AllocatorConfig(attention="additive", device_state=True).check_beside(training)


@pytest.mark.parametrize("preset", ["paper", "paper-code"])
@pytest.mark.parametrize("model", MODELS)
def test_trainings_by_both_presets_have_the_same_bits(model, preset, tmp_path, monkeypatch):
    """Whether one core or two share the shards of a batch, and whether it was stopped."""
    config = tmp_path / "options.toml"
    config.write_text("[model]\nwidth = 8\n[training]\nepochs = 3\nbatch = 4\nshards = 2\n")

    def train(folder, cores=2, **options):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
        out = tmp_path / folder
        return streamplace.train(
            model, list(GRAPHS), out, cluster=FIVE, preset=preset, config=config, **options
        )

    whole = train("whole").folder
    assert_same(train("alone", cores=1).folder, whole, "best.safetensors", "last.safetensors")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", watcher=InterruptsEpoch(2))
    resumed = train("stopped", resume=True).folder
    assert_same(resumed, whole, "best.safetensors", "last.safetensors")
