import re

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.spl import as_spl

POOL = re.compile(r"^  (\w+) = createPool\(\{size=1u, tags=\[(.*)\]\}, Sys.Shared\)[,;]$", re.M)
CLAUSE = re.compile(
    r'^config placement : partitionColocation\("(\w+)"\), host\((\w+)\)(.*);$', re.M
)
TAG = re.compile("[A-Za-z][A-Za-z0-9_]*")


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_every_operator_has_a_clause_and_every_pe_a_pool(deployment: str) -> None:
    """The pool's first tag is the device's, further ones are required by the operators."""
    elements = DEPLOYMENTS[deployment].elements
    text = as_spl(DEPLOYMENTS[deployment])
    pools = {name: re.findall('"(.*?)"', tags) for name, tags in POOL.findall(text)}
    assert len(pools) == len(elements)
    assert all(TAG.fullmatch(tag) for tags in pools.values() for tag in tags)
    clauses = CLAUSE.findall(text)
    assert len(clauses) == len(DEPLOYMENTS[deployment].placement)
    assert all(pools[pool][0] == tag for tag, pool, _ in clauses)


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_one_operator_of_each_pe_keeps_it_apart_from_the_others(deployment: str) -> None:
    """Not two: operators that share a PE must not be exlocated from each other."""
    leaders = [
        tag
        for tag, _, rest in CLAUSE.findall(as_spl(DEPLOYMENTS[deployment]))
        if rest == ', partitionExlocation("streamplace"), hostExlocation("streamplace")'
    ]
    assert len(leaders) == len(set(leaders)) == len(DEPLOYMENTS[deployment].elements)


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_names_never_leave_their_comment(deployment: str) -> None:
    """Every line is a comment, a clause or a pool."""
    for line in as_spl(DEPLOYMENTS[deployment]).splitlines():
        assert not line or line.startswith(("//", "config ", "  Pool_"))
