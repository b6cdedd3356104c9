"""The environment of learning: problems as tensors, decisions one after the other, and rewards."""

from streamplace.learn.env.batch import Batch, ProblemTensors
from streamplace.learn.env.environment import Environment, Observation
from streamplace.learn.env.throughput import throughput

__all__ = ["Batch", "Environment", "Observation", "ProblemTensors", "throughput"]
