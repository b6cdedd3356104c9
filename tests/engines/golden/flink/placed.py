"""Runs a PyFlink job with every operator on the device that streamplace chose.

Put this file beside the program and replace its last line, env.execute("name"), by
    from placed import placed
    placed(env).execute("name")
SQL is included after statement_set.attach_as_datastream(). Operators are identified by their names
(.name("...") in the program) or their uids.

Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
"""

from __future__ import annotations



OPERATORS = {
    'clicks': 'box0',
    'parse': 'box0',
    'orders': 'box1',
    'join': 'box1',
    'score': 'gpu',
    'sink': 'box1',
}
PARALLELISM = {
    'clicks': 1,
    'parse': 1,
    'orders': 1,
    'join': 2,
    'score': 1,
    'sink': 1,
}
GROUPS = {
    'box0': {'dev-box0': 1},
    'box1': {'dev-box1': 1},
    'gpu': {'dev-gpu': 1},
}
SPREAD = {
}
MANAGED = {
}


def placed(env: Any) -> PlacedEnvironment:
    """Environment whose job runs where it was placed.

    MANAGED: TaskManager → managed memory in MB, if it is not MANAGED_MB.
    """
    return PlacedEnvironment(env, OPERATORS, PARALLELISM, GROUPS, SPREAD, MANAGED)
