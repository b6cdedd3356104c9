"""Histograms of a data set's statistics."""

from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.charts import PALETTE, finish
from streamplace.drawing.figures import new_figure
from streamplace.evaluate.profile import Profile
from streamplace.model.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT = PALETTE[1]
LEAST_BINS, MOST_BINS = 10, 40
MOST_WHOLE = 60
LEAST_SATURATION = 0.4
"""Smallest peak, as a share of a link, for which the axis extends to a full link."""


def draw_profile(profile: Profile, data: str, units: str) -> "Figure":
    """Draw the paper's Figure 4: operators per graph, CPU per operator, saturation per stream.

    The title names the data and the units.
    """
    sizes = set(profile.operators)
    figure, axes = new_figure(3 if len(sizes) > 1 else 2, width=4.2, height=3.2)
    if len(sizes) > 1:
        numbers = np.array(profile.operators, float)
        _histogram(axes[0], numbers, _whole(numbers), "operators per graph", "graphs")
        axes[0].locator_params("x", integer=True)
    elif sizes:
        each = " each" if len(profile.operators) > 1 else ""
        data += f", {sizes.pop()} operators{each}"
    cpu, network = axes[-2:]
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
    if profile.saturation.max(initial=0.0) >= LEAST_SATURATION:
        _mark_link(network)
    return finish(figure, f"{data}\n{units}")


def _mark_link(network: "Axes") -> None:
    """Mark the traffic that fills one link."""
    network.axvline(1.0, color=LIMIT, linewidth=1.2)
    network.annotate(
        "one link",
        (1.0, 1.0),
        xycoords=("data", "axes fraction"),
        fontsize=8,
        color=LIMIT,
        ha="left",
        va="top",
        xytext=(4, 0),
        textcoords="offset points",
    )


def _whole(numbers: Floats) -> Floats:
    """Edges of bins around whole numbers, or of wider bins if there are many."""
    bins = np.arange(numbers.min(), numbers.max() + 2) - 0.5
    return bins if len(bins) <= MOST_WHOLE else np.linspace(bins[0], bins[-1], MOST_BINS + 1)


def _range(values: Floats) -> Floats:
    """Edges of bins from 0 to the largest value; more values have more bins."""
    top = max(float(values.max(initial=0.0)), 1e-9)
    n_bins = int(np.clip(2 * len(values) ** 0.5, LEAST_BINS, MOST_BINS))
    return np.linspace(0.0, top * 1.0001, n_bins + 1)


def _histogram(axis: "Axes", values: Floats, bins: Floats, x: str, y: str) -> None:
    axis.margins(y=0.12)
    axis.hist(values, bins=bins.tolist(), color=PALETTE[0], edgecolor="white", linewidth=0.4)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.locator_params("y", integer=True)
