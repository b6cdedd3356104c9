"""Forecasts of the capacity that a job will need, by the predictor with the smallest past loss.

The demand is the least capacity with which no tuple of the last minutes would have been too late:
the largest mean rate over the last interval, the last two, and so on up to 15 minutes, each over a
time that is longer by the lag that tuples may have. So noise that a queue absorbs does not count.
`NeedForecast` predicts the need of the next two intervals, and the likely needs of longer and
longer periods of the next twelve hours.

The predictors are the present value, means and medians of the last values, lines through them, and
the day before, as it was or in proportion to the present. Each is raised by a quantile of its past
errors. Every period has the predictor that was nearest to that quantile.
"""

import itertools
from collections import deque

import numpy as np

from streamplace.model.arrays import Bools, Floats, Ints

DAY, HORIZON, RECENT = 86_400.0, 43_200.0, 900.0
"""Length of a season, of the horizon, and of the window for demand, in seconds."""
ENDS = np.array([2, 3, 4, 6, 8, *(part * 2**power for power in range(9) for part in (12, 18))])
"""Ends of the periods of a forecast in intervals from now, without ends beyond `HORIZON`."""
MISSED, STEP = 0.35, 0.01
"""Share of intervals whose demand may exceed the forecast, and the step by which the margin adapts.

The demand omits the noise that the lag absorbs, and plans carry more than the need, so few tuples
are late.
"""
NEAR, FAR = 0.7, 0.75
"""Quantiles by which predictors of the next intervals and of later periods are judged."""
LEARNING_RATE, FIRST_ERROR = 0.1, 0.03
"""Learning rate of quantiles of errors, and their initial values."""
MIN_DEMAND = 1e-9
MEDIAN_INTERVALS = 24
"""Number of last intervals whose median is a prediction."""


class ErrorQuantiles:
    """Running quantiles of the errors of predictors, for several periods, and mean losses.

    Errors are logarithms of ratios. A quantile q follows its data by steps in proportion to their
    deviation: up by q if it is exceeded, down by 1 - q otherwise. Losses are means over about
    ``memory`` intervals, in which older intervals have smaller weights.
    """

    def __init__(self, shape: tuple[int, int], quantile: float, memory: int) -> None:
        self._quantile, self._memory = quantile, memory
        self._count, self._loss = np.zeros(shape), np.zeros(shape)
        self._error, self._deviation = np.full(shape, FIRST_ERROR), np.full(shape, FIRST_ERROR)

    def learn(self, actual: Floats, forecast: Floats, is_known: Bools) -> None:
        """Compare actual values [periods] with their forecasts [predictors, periods]."""
        safe = np.where(is_known, forecast, 1.0)
        beyond = np.where(is_known, np.log(actual[None, :] / safe), 0.0) - self._error
        q = self._quantile
        self._count += is_known
        weight = is_known / np.clip(self._count, 1, self._memory)
        pinball = np.maximum(q * beyond, (q - 1) * beyond)
        self._loss += weight * (pinball - self._loss)
        self._deviation += weight * (np.abs(beyond) - self._deviation)
        steps = LEARNING_RATE * self._deviation * (q - (beyond < 0))
        self._error += np.where(is_known, steps, 0.0)

    def best(self, is_known: Bools) -> Ints:
        """Predictor with the smallest loss for each period; the first if none has been judged."""
        loss = np.where(is_known & (self._count > 0), self._loss, np.inf)
        return np.asarray(loss.argmin(axis=0))

    def raised(self, forecast: Floats, is_known: Bools) -> Floats:
        """Forecast of the best predictor for each period, raised by the quantile of its errors."""
        chosen, period = self.best(is_known), np.arange(forecast.shape[1])
        return np.asarray(forecast[chosen, period] * np.exp(self._error[chosen, period]))


class NeedForecast:
    """Needed capacity now and in the periods to come, from the rates so far.

    ``seconds``: length of an interval.
    ``lag``: seconds by which tuples may be late.

    ``lengths`` [B] are the numbers of intervals of the periods to come; the first period has the
    next two intervals.
    """

    def __init__(self, seconds: float, lag: float) -> None:
        self._ends = ENDS[max(2 * seconds, HORIZON) >= ENDS * seconds]
        self._starts = np.concatenate(([0], self._ends[:-1]))
        self.lengths = np.diff(self._ends, prepend=0)
        self._day = max(int(self._ends[-1]), round(DAY / seconds))
        self._recent = max(1, round(RECENT / seconds))
        over = seconds * np.arange(1, self._recent + 1)
        self._due = (over / (over + lag)).tolist()
        self._rates = deque[float](maxlen=self._recent)
        self._demand: list[float] = []
        self._needed: list[float] = []
        self._near = deque[Floats](maxlen=2)
        self._far = deque[Floats](maxlen=int(self._ends[-1]))
        self._margin = 0.05
        self._near_errors = ErrorQuantiles((6, 1), NEAR, self._day)
        self._far_errors = ErrorQuantiles((6, len(self._ends)), FAR, self._day)

    def after(self, rate: float) -> Floats:
        """Observe a rate; return the needs of the periods to come in tuples/s, [B]."""
        self._rates.append(rate)
        sums = itertools.accumulate(reversed(self._rates))
        demands = (total / n * self._due[n - 1] for n, total in enumerate(sums, 1))
        self._demand.append(max(MIN_DEMAND, *demands))
        self._learn_margin()
        near = self._next()
        self._near.append(near)
        best = int(self._near_errors.best(np.full((6, 1), fill_value=True))[0])
        self._needed.append(float(near[best]) * (1 + self._margin))
        self._learn_far()
        far = self._later()
        self._far.append(far)
        needs = self._far_errors.raised(far, far > 0)
        needs[0] = self._needed[-1]
        return needs

    def _learn_margin(self) -> None:
        """Compare the demand of the last two intervals with its predictions."""
        if len(self._demand) < 3:
            return
        actual = max(self._demand[-2:])
        is_missed = actual > self._needed[-2] * (1 + 1e-9)
        self._margin = max(0.0, self._margin + STEP * (is_missed - MISSED))
        predicted = self._near[-2][:, None]
        self._near_errors.learn(np.array([actual]), predicted, predicted > 0)

    def _learn_far(self) -> None:
        """Compare the needs of the last periods with the forecasts that end now."""
        is_over = self._ends <= len(self._far)
        if not is_over.any():
            return
        tail = np.array(self._needed[-int(self.lengths.max()) :])
        actual = np.array([tail[-length:].max() for length in self.lengths.tolist()])
        intervals_ago = np.minimum(self._ends, len(self._far))
        columns = [self._far[-ago][:, b] for b, ago in enumerate(intervals_ago.tolist())]
        forecast = np.stack(columns, axis=1)
        self._far_errors.learn(actual, forecast, is_over[None, :] & (forecast > 0))

    def _next(self) -> Floats:
        """Predictions [6] of the demand of the next two intervals."""
        demand, day = self._demand, len(self._demand) - 1 - self._day
        now = float(np.mean(demand[-3:]))
        yesterday = demand[-1]
        if day >= 3:
            yesterday = (
                now * max(demand[day + 1 : day + 3]) / float(np.mean(demand[day - 2 : day + 1]))
            )
        lines = [float(_line(demand[-n:], np.array([2]), np.array([1]))[0]) for n in (6, 12)]
        lines = [max(line, 0.5 * demand[-1]) for line in lines]
        return np.array([demand[-1], now, np.median(demand[-6:]), *lines, yesterday])

    def _later(self) -> Floats:
        """Predictions [6, B] of the largest need of each period; -1 for no prediction."""
        needed = self._needed
        predictions = np.full((6, len(self._ends)), -1.0)
        predictions[0], predictions[1] = needed[-1], np.median(needed[-6:])
        predictions[2] = np.median(needed[-MEDIAN_INTERVALS:])
        if len(needed) >= 4:
            ahead = (np.minimum(self._ends, 24), np.minimum(self._starts + 1, 24))
            predictions[3] = np.maximum(_line(needed[-12:], *ahead), 0.2 * needed[-1])
        now, around = len(needed) - 1, self._recent
        day = now - self._day
        if day >= around:
            past = np.array(needed[day - around : day + int(self._ends[-1]) + 1])
            total = np.concatenate(([0.0], np.cumsum(past)))
            middle = np.arange(around + 1, len(past))
            last = np.minimum(middle + around + 1, len(past))
            smooth = (total[last] - total[middle - around]) / (last - middle + around)
            predictions[5] = np.maximum.reduceat(smooth, self._starts)
            level = float(np.mean(needed[now - around :])) / float(
                np.mean(needed[day - around : day + 1])
            )
            predictions[4] = predictions[5] * level
        return predictions


def _line(values: list[float], if_rising: Ints, if_falling: Ints) -> Floats:
    """Values of the line through the last values, some intervals ahead; the last value of few."""
    number = len(values)
    if number < 4:
        return np.full(len(if_rising), values[-1])
    at = np.arange(number) - (number - 1) / 2
    last_values = np.array(values)
    slope = float(at @ last_values / (at @ at))
    ahead = if_rising if slope > 0 else if_falling
    return np.asarray(last_values.mean() + slope * ((number - 1) / 2 + ahead))
