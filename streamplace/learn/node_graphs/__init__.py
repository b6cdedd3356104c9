"""Graphs whose nodes are tasks on devices, and messages through them; for policies that share them.

`graph` lays them out, `features` holds what nodes and edges look like, `direction` is the
arithmetic of messages along one direction in numba, `messages` and `module` the same in torch,
with gradients.
"""
