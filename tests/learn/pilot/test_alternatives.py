import numpy as np
import pytest
from pilots import draw_whole, pilot_network, tangle, uneven
from problems import PROBLEMS, constrained

from streamplace.learn.models.pilot.features import features_of
from streamplace.learn.models.pilot.network import alternatives
from streamplace.model import Problem

CASES = {
    "free": Problem(tangle(), uneven()),
    "equal": PROBLEMS["fork-join"],
    "ruled": constrained(),
    "one device": PROBLEMS["long chain on one device"],
}


@pytest.mark.parametrize("forks", [1, 3, 1000])
@pytest.mark.parametrize("name", CASES)
def test_every_open_device_is_tried_at_some_decisions(name: str, forks: int) -> None:
    """After the same decisions before, and nothing is decided after them.

    Where a decision is none, nothing is tried; else every rollout forks as often as asked.
    """
    chosen, record = draw_whole(features_of(CASES[name]), pilot_network(), 8)
    tried = alternatives(record, chosen, forks, np.random.default_rng(0))
    rows = zip(tried.given, tried.rollout, tried.step, tried.device, strict=True)
    for given, rollout, step, device in rows:
        assert given[:step].tolist() == chosen[rollout, :step].tolist()
        assert given[step] == device
        assert (given[step + 1 :] == -1).all()
    forked = set(zip(tried.rollout.tolist(), tried.step.tolist(), strict=True))
    for rollout, step in forked:
        devices = tried.device[(tried.rollout == rollout) & (tried.step == step)]
        assert devices.tolist() == np.flatnonzero(record.open[rollout, step]).tolist()
    choices = {(s, t) for s, t in np.argwhere(record.open.sum(axis=2) > 1).tolist()}
    assert forked <= choices
    for s in range(len(chosen)):
        count = sum(rollout == s for rollout, _ in forked)
        assert count <= forks
        if name == "free":
            assert count == min(forks, chosen.shape[1])
    assert forks < 1000 or forked == choices


@pytest.mark.parametrize("name", ["free", "one device"])
def test_values_stand_where_their_alternative_was_tried(name: str) -> None:
    chosen, record = draw_whole(features_of(CASES[name]), pilot_network(), 4)
    tried = alternatives(record, chosen, 3, np.random.default_rng(0))
    values = np.arange(len(tried.device)) / 7
    q_values = tried.q_values(values)
    assert q_values.shape == record.open.shape
    assert q_values[tried.rollout, tried.step, tried.device] == pytest.approx(values)
    assert np.isfinite(q_values).sum() == len(values)
