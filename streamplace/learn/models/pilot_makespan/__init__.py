"""Pilot for one pass: it rebuilds a schedule task by task, knowing the previous one."""

from pydantic import Field

from streamplace.learn.config import Config


class PilotMakespanConfig(Config):
    """Options of pilot for makespan."""

    width: int = Field(default=32, ge=1, le=1024)  # units of every layer
    # number of times in a row that the schedule is rebuilt by which the model is validated
    sweeps: int = Field(default=3, ge=1, le=100)
    # number of times that a training schedule is rebuilt
    rebuilt: int = Field(default=2, ge=0, le=100)
