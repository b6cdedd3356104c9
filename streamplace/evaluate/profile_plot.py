"""The distributions of a data set as histograms."""

from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.figures import BLUE, ORANGE, new_figure
from streamplace.evaluate.profile import Profile
from streamplace.model.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_profile(profile: Profile) -> "Figure":
    """Return the paper's Figure 4: operators per graph, CPU per operator, saturation per stream."""
    figure, (size, cpu, network) = new_figure(3)
    bins = np.arange(min(profile.operators), max(profile.operators) + 2, dtype=np.float64) - 0.5
    if len(bins) > 60:
        bins = np.linspace(bins[0], bins[-1], 41)
    _histogram(size, np.array(profile.operators, float), bins, "operators per graph", "graphs")
    _histogram(
        cpu,
        profile.utilisation,
        _range(profile.utilisation),
        "CPU of an operator (devices)",
        "operators",
    )
    _histogram(
        network,
        profile.saturation,
        _range(profile.saturation),
        "traffic of a stream (links)",
        "streams",
    )
    network.axvline(1.0, color=ORANGE, linewidth=1.2)
    network.annotate(
        "one link",
        (1.0, 1.0),
        xycoords=("data", "axes fraction"),
        fontsize=8,
        color=ORANGE,
        ha="left",
        va="top",
        xytext=(4, 0),
        textcoords="offset points",
    )
    return figure


def _range(values: Floats) -> Floats:
    top = max(float(values.max(initial=0.0)), 1e-9)
    return np.linspace(0.0, top * 1.0001, 41)


def _histogram(
    axis: "Axes",
    values: Floats,
    bins: Floats,
    x: str,
    y: str,
) -> None:
    axis.hist(values, bins=bins.tolist(), color=BLUE, edgecolor="white", linewidth=0.4)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
