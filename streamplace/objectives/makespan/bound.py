"""What no placement can beat: the proven lower bound of a makespan."""

from streamplace.model.problem import Problem


def least_makespan(problem: Problem) -> float:
    """Seconds that one pass takes at least, wherever its operators run."""
    return problem.cached("least_makespan", _least_makespan)


def _least_makespan(problem: Problem) -> float:
    from streamsim.passes import bounds

    rules = problem.rules
    return bounds(problem.one_pass, None if rules is None else rules.allowed[rules.unit]).best
