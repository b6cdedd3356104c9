"""Proven lower bound on the makespan of any placement."""

from streamplace.model.problem import Problem


def least_makespan(problem: Problem) -> float:
    """Lower bound on the seconds of one pass, for any placement."""
    return problem.cached("least_makespan", _least_makespan)


def _least_makespan(problem: Problem) -> float:
    from streamsim.passes import bounds

    rules = problem.rules
    return bounds(problem.one_pass, None if rules is None else rules.allowed[rules.unit]).best
