"""Stream graphs for the job of known costs."""

import itertools
from typing import Any


def pipeline(*parallelism: int, rate: float = 100) -> dict[str, Any]:
    """Operators op0 → op1 → … of these parallelisms."""
    operators = [{"name": f"op{i}", "parallelism": p} for i, p in enumerate(parallelism)]
    operators[0]["rate"] = rate
    pairs = itertools.pairwise(operators)
    streams = [{"from": u["name"], "to": v["name"], "partitioning": "rebalance"} for u, v in pairs]
    return {"name": "pipeline", "operators": operators, "streams": streams}
