"""The core refuses passes and placements that do not fit, whatever Python hands it."""

import numpy as np
import pytest
from passes_cases import tasks
from streamsim.passes import Rules, compile_pass, makespans

CHAIN = compile_pass(tasks([1, 2, 3], [(0, 1), (1, 2)]))


def with_field(table, field, value):
    """A copy of records, of which the first has another value."""
    changed = table.copy()
    changed[field].flat[0] = value
    return changed


@pytest.mark.parametrize(
    ("column", "field", "value"),
    [
        ("operators", "inputs", 1),
        ("operators", "out_end", 3),
        ("streams", "target", 7),
        ("streams", "source", 1),
        ("streams", "size", np.nan),
        ("streams", "more", 0),
        ("devices", "type", 1),
        ("links", "latency", -1.0),
    ],
)
def test_a_pass_that_does_not_fit_together_is_refused(column, field, value):
    wrong = CHAIN._replace(**{column: with_field(getattr(CHAIN, column), field, value)})
    with pytest.raises(ValueError, match=r"."):
        makespans(wrong, [[0, 1, 0]])


@pytest.mark.parametrize("placement", [[0, 1], [0, 1, 2], [0, -1, 0]])
def test_a_placement_that_does_not_fit_is_refused(placement):
    with pytest.raises(ValueError, match=r"place|device"):
        makespans(CHAIN, [placement])


@pytest.mark.parametrize("network", ["free", "sender", "link", "port", "shared"])
def test_transfers_without_end_leave_nothing_for_the_next_pass(network):
    rules = Rules(network=network)
    forever = [[np.inf, np.inf], [1.0, 1.0]]
    twice = makespans(CHAIN, [[0, 1, 0]] * 2, rules, send_factors=forever)
    assert twice[1] == makespans(CHAIN, [[0, 1, 0]], rules)[0]
