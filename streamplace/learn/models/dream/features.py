"""What a policy sees of operators and streams, standardised over the training set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamplace.errors import FormatError
from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem

LEAST = 1e-4
"""Below this share of a device or link a load is as good as none; what sinks emit is none."""

OPERATOR_FEATURES = ("log load", "log transfer", "load", "transfer")
STREAM_FEATURES = ("log stream transfer",)
FEATURES = OPERATOR_FEATURES + STREAM_FEATURES


@dataclass(frozen=True, slots=True)
class FeatureScale:
    """Mean and standard deviation [F] of every feature over a training set.

    Operators have the features `OPERATOR_FEATURES`, streams `STREAM_FEATURES`; F counts both.
    """

    mean: Floats
    std: Floats

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> "FeatureScale":
        """FeatureScale of the operators and streams of these problems."""
        columns = [np.concatenate([operator_features(p) for p in problems])]
        columns.append(np.concatenate([stream_features(p) for p in problems]))
        columns = [rows if len(rows) else np.zeros((1, rows.shape[1])) for rows in columns]
        mean = np.concatenate([rows.mean(axis=0) for rows in columns])
        std = np.concatenate([rows.std(axis=0) for rows in columns])
        return cls(mean, np.where(std > 0, std, 1.0))

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> "FeatureScale":
        """FeatureScale from what `document` made of one; ``where`` it stands is told in errors."""
        try:
            mean, std = (np.array(document[key], np.float64) for key in ("mean", "std"))
        except (KeyError, ValueError, TypeError):
            mean = std = np.empty(0)
        if list(document.get("names", ())) != list(FEATURES):
            raise FormatError(f"{where}: was trained on other features; train again")
        if not (mean.shape == std.shape == (len(FEATURES),) and (std > 0).all()):
            raise FormatError(f"{where}: lacks a mean and std for every feature; fetch it again")
        return cls(mean, std)

    def document(self) -> dict[str, Any]:
        """Names, means and standard deviations, fit for JSON."""
        mean, std = self.mean.tolist(), self.std.tolist()
        return {"names": list(FEATURES), "mean": mean, "std": std}

    def operators(self, problem: Problem) -> Floats:
        """Standardised features [N, F] of operators."""
        n = len(OPERATOR_FEATURES)
        return np.asarray((operator_features(problem) - self.mean[:n]) / self.std[:n])

    def streams(self, problem: Problem) -> Floats:
        """Standardised features [M, F] of streams."""
        n = len(OPERATOR_FEATURES)
        return np.asarray((stream_features(problem) - self.mean[n:]) / self.std[n:])


def operator_features(problem: Problem) -> Floats:
    """Load of an operator and the transfer that its output would need: logarithms, then shares.

    [N, 4].

    The load is the share of a device, λ · seconds, as the mean over the devices. The transfer is
    the share of a link, λ · Σ selectivity · payload · seconds per byte, as the mean over the links.
    """
    instance = problem.instance
    load = instance.full_load[:, instance.device_type].mean(axis=1)
    sent = np.bincount(instance.source, stream_transfers(problem), problem.n_operators)
    shares = np.stack([load, sent], axis=1)
    return np.concatenate([np.log(np.maximum(shares, LEAST)), shares], axis=1)


def stream_features(problem: Problem) -> Floats:
    """Logarithm [M, 1] of the share of a link that a stream would need."""
    return np.log(np.maximum(stream_transfers(problem), LEAST))[:, None]


def stream_transfers(problem: Problem) -> Floats:
    """Share [M] of a link that each stream would need, as the mean over the links."""
    d = problem.n_devices
    wire: float = problem.instance.seconds_per_byte.sum() / max(d * (d - 1), 1)
    return problem.instance.traffic * wire
