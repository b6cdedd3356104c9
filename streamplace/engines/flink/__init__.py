"""Flink: measure, place and move jobs of a running cluster; exports.

``FlinkEngine`` is the cluster, ``Rest`` its REST interface, ``Program`` the code of a job, and
``MoveSettings`` how jobs are moved.
"""

from functools import partial

from streamsim.lazy import load

from streamplace.engines.flink.export import as_flink as as_flink

__getattr__ = partial(load, __name__)
