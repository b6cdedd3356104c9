"""Headroom of plans: the share of machines that stays free, with the errors of a profile."""

from streamplace.model.prediction_intervals import PredictionErrors

MAX_FREE = 1 - 1e-12
"""Largest free share at which rounding does not make the rest 0."""
FREE = "the share that stays free"
UNKNOWN = "what the profile does not know"
VARIED = "CPU per tuple that varied in the profile"
"""Purposes of the reserve: headroom, errors of predictions, and more of it for varying CPU."""


def reserve_of(headroom: float, errors: PredictionErrors | None) -> tuple[float, dict[str, float]]:
    """Share that stays free, and the multiples of the rate by purpose.

    >>> reserve_of(0.2, None)
    (0.19999999999999996, {'the share that stays free': 1.25})
    """
    share = min(MAX_FREE, 1 - (1 - headroom))
    reserves = {FREE: 1 / (1 - headroom)} if headroom else {}
    if errors is not None and errors.least < 1:
        reserves[UNKNOWN] = 1 / (errors.least * errors.of_spread)
        if errors.of_spread > 1:
            reserves[VARIED] = errors.of_spread
        share = min(MAX_FREE, 1 - (1 - share) * errors.least)
    return share, reserves
