"""Spoiled answers of Flink: every single one, and whole conversations with a cluster."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fake_flink import ANSWERS as CONVERSATION
from fake_flink import JOB, Clock, FakeFlink, said
from fuzz.documents import document_of, to_json
from pydantic import TypeAdapter

from streamplace.flink.cpu import threads as cpu
from streamplace.flink.deployment import deployment_of
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.measure import profile, sampling
from streamplace.flink.measure.cluster import measured_cluster
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.pin.apply import verify
from streamplace.flink.rest import client as rest
from streamplace.flink.rest.answers import ANSWERS, parse_complaint, root_cause
from streamplace.flink.rest.client import Rest
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlannerSettings

SECONDS = 10.0
"""That a job is profiled for, on a clock that passes while nobody waits."""

Read = Callable[[bytes, Path], Any]


def answer_readers():
    """Readers by name, each with valid answers: one for every path, and one for what is refused."""
    readers: dict[str, tuple[Read, Callable[[], Sequence[bytes]]]] = {
        f"answer {path}": (_reader(path), _seeds(path)) for path in ANSWERS
    }
    readers["answer complaint"] = (_read_complaint, lambda: [b'{"errors": ["a.B: c\\n\\tat d"]}'])
    for name, deed in CONVERSATIONS.items():
        readers[f"flink {name}"] = (_conversation(deed), lambda: [to_json(CONVERSATION)])
    return readers


def _reader(path):
    def read(content, folder):
        FakeFlink(otherwise=said(content)).rest.get(path.replace("*", "a"))

    return read


def _seeds(path):
    @cache
    def seeds():
        schema = TypeAdapter(ANSWERS[path]).json_schema()
        return [to_json(document_of(schema, Random(i))) for i in range(20)]

    return seeds


def _read_complaint(content, folder):
    assert root_cause(parse_complaint(content)).isprintable()


def _conversation(deed):
    """Return a reader of documents by path: all that a cluster answers while something is done."""

    def read(content, folder):
        try:
            answers = json.loads(content)
        except (ValueError, RecursionError):
            answers = {}
        flink, clock = FakeFlink(answers if isinstance(answers, dict) else {}), Clock()
        with (
            patch.object(sampling, "time", clock),
            patch.object(rest, "time", clock),
            patch.object(cpu, "time", clock),
            patch.object(cpu, "local_task_managers", list),
        ):
            deed(flink.rest)

    return read


def _cluster_file(flink):
    return measured_cluster(flink, "2500 MIPS", "1 Gbps").as_toml()


PLACED = Layout({"src": ["dev-0"], "a": ["dev-0"], "b": ["dev-0"]}, uncounted=["b"])
OFFERS = Catalogue.of([Offer("small", 0.1, cores=2), Offer("large", 0.3, cores=8)])
ADVICE = PlannerSettings(FLINK_HEADROOM, budget=Budget(5.0, 500))
CONVERSATIONS: dict[str, Callable[[Rest], Any]] = {
    "cluster": lambda flink: (_cluster_file(flink), str(deployment_of(flink))),
    "profile": lambda flink: measured_graph(profile.profile(flink, JOB, SECONDS), 2500.0),
    "verify": lambda flink: verify(flink, JOB, PLACED),
    "advise": lambda flink: (
        FlinkEngine(flink).advise(JOB, "2x", OFFERS, ADVICE, seconds=SECONDS / 2).to_json()
    ),
    "jobs": lambda flink: (flink.jobs(), flink.settings(), flink.offered(), flink.failure(JOB)),
}
