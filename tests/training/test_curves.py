"""Curves of several trainings in one picture."""

import numpy as np
from matplotlib.figure import Figure

from streamplace.evaluate import training_answers as trained
from streamplace.learn.history import Epoch, History


def history(rewards, validation):
    """A training with such results."""
    rows = zip(rewards, validation, strict=True)
    return History([Epoch(i, r, 1, 0, 0, 0, 0, v, 1, 1) for i, (r, v) in enumerate(rows, 1)])


def test_bands_are_from_the_least_to_the_most_of_all_trainings(tmp_path, monkeypatch):
    """As long as all of them train; the line is the mean."""
    figures: list[Figure] = []
    save = trained.save

    def noted(figure, path):
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(trained, "save", noted)
    histories = [history([0.1, 0.4], [0.2, 0.6]), history([0.3, 0.6, 0.9], [0.4, 0.8, 0.8])]
    path = tmp_path / trained.CURVES
    trained.write_curves(histories, "throughput", "mine", path)
    assert path.read_bytes().startswith(b"%PDF")
    (axis,) = figures[0].axes
    reward, validation = axis.lines
    assert list(reward.get_ydata()) == [0.2, 0.5]
    np.testing.assert_allclose(validation.get_ydata(), [0.3, 0.7])
    bands = [band.get_paths()[0].vertices for band in axis.collections]
    for band, (low, high) in zip(bands, [(0.1, 0.6), (0.2, 0.8)], strict=True):
        assert (band[:, 1].min(), band[:, 1].max()) == (low, high)


def test_without_validation_there_is_the_reward_alone(tmp_path):
    runs = [history([0.1, 0.2], [None, None])] * 2
    trained.write_curves(runs, "makespan", "mine", tmp_path / "c.svg")
    text = (tmp_path / "c.svg").read_text()
    assert "training graphs" in text
    assert "held out" not in text
