"""Flink: measure, place and move jobs of a running cluster.

``FlinkEngine`` is the cluster, ``Rest`` its REST interface, ``Program`` the code of a job, and
``MoveSettings`` how jobs are moved.
"""

from functools import partial

from streamsim.lazy import load

__getattr__ = partial(load, __name__)
