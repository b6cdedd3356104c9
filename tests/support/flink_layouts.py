"""Predictions of layouts that are given."""

from streamplace.engines.flink.decide.candidates import Judge, Question, names_of
from streamplace.engines.flink.decide.decision import Decision, decide
from streamplace.engines.flink.decide.layouts import Layout


def judged(question: Question, layout: Layout) -> Decision:
    """One given layout beside the present one."""
    judge = Judge(question)
    given = judge.pinned("the given layout", names_of(question.measured.graph, layout))
    return decide(judge.present(), [given])
