"""SPL: every operator has a clause, and every PE a pool of one host."""

import re

import pytest
from engine_deployments import DEPLOYMENTS

from streamplace.engines.spl import as_spl

POOL = re.compile(r"^  (\w+) = createPool\(\{size=1u, tags=\[(.*)\]\}, Sys.Shared\)[,;]$", re.M)
CLAUSE = re.compile(
    r'^config placement : partitionColocation\("(\w+)"\), host\((\w+)\)(.*);$', re.M
)
TAG = re.compile("[A-Za-z][A-Za-z0-9_]*")
APART = ', partitionExlocation("streamplace"), hostExlocation("streamplace")'


@pytest.mark.parametrize("deployment", list(DEPLOYMENTS))
def test_every_operator_has_a_clause_and_every_pe_a_pool(deployment: str) -> None:
    """The pool's first tag is the device's, further ones are required by the operators.

    One operator of each PE keeps it apart from the others, not two: operators that share a PE must
    not be exlocated from each other. Names never leave their comment.
    """
    elements = DEPLOYMENTS[deployment].elements
    text = as_spl(DEPLOYMENTS[deployment])
    pools = {name: re.findall('"(.*?)"', tags) for name, tags in POOL.findall(text)}
    assert len(pools) == len(elements)
    assert all(TAG.fullmatch(tag) for tags in pools.values() for tag in tags)
    clauses = CLAUSE.findall(text)
    assert len(clauses) == len(DEPLOYMENTS[deployment].placement)
    assert all(pools[pool][0] == tag for tag, pool, _ in clauses)
    leaders = [tag for tag, _, rest in clauses if rest == APART]
    assert len(leaders) == len(set(leaders)) == len(elements)
    for line in text.splitlines():
        assert not line or line.startswith(("//", "config ", "  Pool_"))
