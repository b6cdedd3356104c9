from typing import Any

import numpy as np
import pytest
from pilots import draw, pilot_network, tangle, uneven
from problems import PROBLEMS, constrained

from streamplace.learn.algorithms.kernels import DecisionRecord
from streamplace.learn.models.pilot.features import features_of
from streamplace.learn.models.pilot.network import alternatives
from streamplace.model import Problem

NETWORK = pilot_network()
CASES = {
    "free": Problem(tangle(), uneven()),
    "equal": PROBLEMS["fork-join"],
    "ruled": constrained(),
}


def sampled(problem: Any, samples: Any = 4) -> Any:
    """PilotFeatures of a problem, rollouts that ended well, and what was seen along them."""
    view = features_of(problem)
    chosen, record = draw(view, NETWORK, samples)
    whole = chosen[:, 0] >= 0
    return view, chosen[whole], DecisionRecord(*(part[whole] for part in record))


def tried(chosen: Any, record: Any, forks: Any = 3, seed: Any = 0) -> Any:
    """Alternatives to the decisions of rollouts."""
    return alternatives(record, chosen, forks, np.random.default_rng(seed))


@pytest.mark.parametrize("name", CASES)
def test_alternatives_keep_what_was_decided_before(name: Any) -> None:
    """And nothing is decided after them."""
    _, chosen, record = sampled(CASES[name], 8)
    found = tried(chosen, record)
    assert found.given.shape[1] == chosen.shape[1]
    rows = zip(found.given, found.rollout, found.step, found.device, strict=True)
    for given, rollout, step, device in rows:
        assert given[:step].tolist() == chosen[rollout, :step].tolist()
        assert given[step] == device
        assert (given[step + 1 :] == -1).all()


@pytest.mark.parametrize("name", CASES)
def test_every_open_device_is_tried_once(name: Any) -> None:
    _, chosen, record = sampled(CASES[name], 8)
    found = tried(chosen, record)
    forks = set(zip(found.rollout.tolist(), found.step.tolist(), strict=True))
    assert {rollout for rollout, _ in forks} == set(range(len(chosen)))
    for rollout, step in forks:
        devices = found.device[(found.rollout == rollout) & (found.step == step)]
        assert devices.tolist() == np.flatnonzero(record.open[rollout, step]).tolist()
        assert chosen[rollout, step] in devices


@pytest.mark.parametrize("forks", [1, 2, 5])
def test_no_rollout_forks_more_often_than_asked(forks: Any) -> None:
    """Where every decision is one, it forks exactly so often."""
    _, chosen, record = sampled(CASES["free"])
    found = tried(chosen, record, forks=forks)
    for rollout in range(len(chosen)):
        assert len(set(found.step[found.rollout == rollout].tolist())) == forks


def test_decisions_without_a_choice_are_not_tried() -> None:
    """However many forks are asked for, all others are."""
    _, chosen, record = sampled(CASES["ruled"], 8)
    found = tried(chosen, record, forks=1000)
    choices = {tuple(fork) for fork in np.argwhere(record.open.sum(axis=2) > 1).tolist()}
    assert set(zip(found.rollout.tolist(), found.step.tolist(), strict=True)) == choices
    assert len(choices) < record.open.shape[0] * record.open.shape[1]


def test_where_there_is_one_device_nothing_can_be_tried() -> None:
    _, chosen, record = sampled(PROBLEMS["long chain on one device"])
    found = tried(chosen, record)
    assert found.given.shape == (0, chosen.shape[1])
    assert np.isnan(found.q_values(np.empty(0))).all()


def test_values_stand_where_their_alternative_was_tried() -> None:
    _, chosen, record = sampled(CASES["free"])
    found = tried(chosen, record)
    values = np.arange(len(found.device)) / 7
    q_values = found.q_values(values)
    assert q_values.shape == record.open.shape
    assert q_values[found.rollout, found.step, found.device] == pytest.approx(values)
    assert np.isfinite(q_values).sum() == len(values)
