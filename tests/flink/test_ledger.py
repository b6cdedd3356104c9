"""The ledger of a user, which decides nothing."""

from dataclasses import replace

from planning_cases import pipeline

import streamplace
from streamplace.flink.ledger import append_entries
from streamplace.io.ledger import LedgerEntry
from streamplace.model.graph import PROFILE_WINDOWS
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer

OFFERS = Catalogue.of(
    [Offer("small", 0.1, mips=4.0, cores=2), Offer("large", 0.35, mips=4.0, cores=8)]
)
MEASURED = replace(pipeline(), attributes={PROFILE_WINDOWS: 4})


def test_plans_and_placements_are_the_same_on_every_computer():
    """Also where predictions for the same job were far off; both say what their interval is of."""

    def answers():
        plan = streamplace.plan(MEASURED, rate=1000.0, offers=OFFERS, budget=Budget(None, 2_000))
        cluster = streamplace.Cluster.uniform(2, mips=4.0)
        placement = streamplace.place(MEASURED, cluster, budget=Budget(None, 2_000))
        rests_on = plan.to_json()["errors"]["from"]
        assert rests_on.endswith("runs of 13 jobs recorded with streamplace")
        for answer in (plan, placement):
            assert answer.to_json()["errors"]["from"] == rests_on
            assert rests_on in " ".join(str(answer.report()).split())
        return [plan.to_json(), placement.to_json() | {"seconds": 0.0}]

    before = answers()
    append_entries([LedgerEntry(MEASURED.name, 100.0, 20.0) for _ in range(20)])
    assert answers() == before
