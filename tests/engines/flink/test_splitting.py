"""Whether a chain that limits a job would pay as two tasks."""

from dataclasses import replace

import numpy as np
import pytest

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.decide.candidates import Question, decision
from streamplace.engines.flink.decide.proposal import Proposal
from streamplace.engines.flink.decide.splitting import Splitting, splitting
from streamplace.engines.flink.measure.local_cost import WORK_IN, work_in_chains
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.engines.live import Measurement
from streamplace.placers.registry import Budget

BUDGET = Budget(seconds=0.02)
CHAIN = "parse -> score -> write"
QUOTAS = Cluster.of([Device(f"d{i}", mips=625) for i in range(2)], overhead=1e-6)
"""Two TaskManagers that have a quarter of a core of 2,500 MIPS each."""


def job(
    chain: str = CHAIN, parallelism: int = 1, local: float = 1e3, **attributes: str
) -> StreamGraph:
    """A cheap source before a chain of 5.5e6 instructions per tuple, 100 times a second."""
    operators = [
        Operator("src", ipt=1e5, payload=100, rate=100.0, parallelism=parallelism),
        Operator(chain, ipt=5.5e6, parallelism=parallelism),
    ]
    streams = [Stream("src", chain, partitioning="forward", ipt=local)]
    return StreamGraph.of("job", operators, streams, attributes)


def asked(graph: StreamGraph, cluster: Cluster = QUOTAS, rate: float | None = None) -> Question:
    """The job is held back, and all of it runs on the first device."""
    present = {row.name: ["d0"] * row.parallelism for row in graph.operators}
    return Question(Measurement(graph, cluster, True), present, {}, True, rate, modes=())


def proposed(question: Question) -> Splitting | None:
    """What is proposed beside the decision."""
    return splitting(question, decision(question, budget=BUDGET), budget=BUDGET)


def test_a_heavy_chain_of_unknown_parts_is_proposed_with_a_bound() -> None:
    """At a quota, the job carries 100/s on one device, and twice that on two if it is halved."""
    question = asked(job())
    answer = proposed(question)
    assert answer is not None
    assert answer.chain == CHAIN
    assert answer.before == ("score", "write")
    assert answer.carries / answer.now == pytest.approx(1.96, rel=0.02)
    made = Proposal(
        "job", question.measured, decision(question, budget=BUDGET), 1.0, splitting=answer
    )
    sentence = [*made.sentences()][-1]
    assert "in front of 'score' or 'write', whichever divides its CPU time best" in sentence
    assert "at most about" in sentence
    assert made.to_json()["splitting"]["before"] == ["score", "write"]


def test_measured_work_decides_where_and_whether_a_chain_is_split() -> None:
    """Two fifths in front of the last operator, or nearly everything in one operator."""
    answer = proposed(asked(job(**{f"{WORK_IN}{CHAIN}": "0.02 0.38 0.6"})))
    assert answer is not None
    assert answer.before == ("write",)
    assert answer.carries / answer.now == pytest.approx(1 / 0.6, rel=0.02)
    assert "for about" in str(answer)
    assert proposed(asked(job(**{f"{WORK_IN}{CHAIN}": "0.02 0.95 0.03"}))) is None


def test_nothing_is_said_where_splitting_cannot_pay() -> None:
    """One operator, no free CPU, a rate that is nearly carried, or tuples that are dear to send.

    Nor where the chain alone exceeds its device at any rate, so that nothing is carried now.
    """
    assert proposed(asked(job("score"))) is None
    assert proposed(asked(job(), Cluster.uniform(1, mips=625))) is None
    assert proposed(asked(job(parallelism=2))) is None
    assert proposed(asked(job(), rate=109.0)) is None
    assert proposed(asked(job(local=5e6))) is None
    dear = Cluster.of([*QUOTAS.devices], overhead=1.0)
    assert proposed(asked(job(), dear)) is None
    held = job().with_operators(replace(job().operators, constant=np.array([0.0, 900.0])))
    assert proposed(asked(held)) is None


def test_a_chain_whose_subtasks_wait_is_not_split() -> None:
    """Which of its operators waits is unknown, so both tasks are held to what a subtask reads."""
    limits = {CHAIN: 120.0}
    operators = [replace(row, max_rate=limits.get(row.name, 0.0)) for row in job().operators]
    graph = StreamGraph.of("job", operators, list(job().streams))
    assert proposed(asked(graph)) is None


def test_the_thread_of_a_chain_limits_as_well_as_a_device() -> None:
    """One device of four cores runs it in two threads instead of one."""
    answer = proposed(asked(job(), Cluster.uniform(1, mips=625, cores=4)))
    assert answer is not None
    assert answer.carries / answer.now == pytest.approx(2.0, rel=0.02)


def test_the_chains_of_sql_are_left_alone() -> None:
    graph = job()
    operators = [replace(row, about="Calc") for row in graph.operators]
    assert proposed(asked(StreamGraph.of("sql", operators, list(graph.streams)))) is None


@pytest.mark.parametrize(
    ("shown", "samples", "expected"),
    [
        ("parse -> score -> write", 10, "0.2 0.8 0"),
        ("parse -> score -> write", 1, None),
        ("parse -> (score, write)", 10, None),
    ],
)
def test_work_is_known_of_lines_with_enough_samples(
    shown: str, samples: int, expected: str | None
) -> None:
    task = FlinkTask("v", CHAIN, shown, 1, ("parse", "score", "write"))
    counts = StackCounts(10 * samples, written=5 * samples, behind=(4 * samples,))
    facts = work_in_chains([task], {"v": counts})
    assert facts.get(f"{WORK_IN}{CHAIN}") == expected
