"""``simulate`` of problem documents, as the papers' simulators do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from passes_cases import golden


def _document(case: dict[str, Any]) -> dict[str, Any]:
    """Problem document of one of GiPH's problems; its units are taken for seconds and bytes."""
    rate, n = case["comp_rate"], len(case["comp_rate"])
    links = [
        {
            "from": f"d{a}",
            "to": f"d{b}",
            "bandwidth": f"{8 / case['inv_bw'][a][b]} bps",
            "latency": case["delay"][a][b],
        }
        for a in range(n)
        for b in range(n)
        if a != b
    ]
    return {
        "graph": {
            "fires": "all",
            "operators": [{"name": f"t{i}"} for i in range(len(case["tasks"]))],
            "streams": [
                {"from": f"t{u}", "to": f"t{v}", "payload": size} for u, v, size in case["edges"]
            ],
        },
        "cluster": {"devices": [{"name": f"d{d}"} for d in range(n)], "links": links},
        "seconds": [[task["compute"] * r for r in rate] for task in case["tasks"]],
    }


def test_giphs_own_runs_come_out_of_their_documents(run: Callable) -> None:
    """Makespan, starts and ends of placements that GiPH's own simulator ran."""
    for case in list(golden("giph"))[:3]:
        Path("problem.json").write_text(json.dumps(_document(case)))
        for placed in case["placements"][:3]:
            assignment = {f"t{i}": f"d{d}" for i, d in enumerate(placed["mapping"])}
            Path("placed.json").write_text(json.dumps({"assignment": assignment}))
            out = run("simulate", "problem.json", "placed.json", "--preset", "giph", "--json").out
            told = json.loads(out)
            assert told["makespan"] == pytest.approx(placed["latency"], rel=1e-9)
            assert told["bound"] <= told["makespan"]
            rows = [told["schedule"][f"t{i}"] for i in range(len(assignment))]
            assert np.allclose([row["start"] for row in rows], placed["start"], rtol=1e-9)
            assert np.allclose([row["finish"] for row in rows], placed["end"], rtol=1e-9)
