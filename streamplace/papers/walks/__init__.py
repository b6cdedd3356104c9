"""Policies that improve a placement step by step (GiPH, Placeto): graph, messages, learner.

`graph` lays out the nodes with their features, `direction` computes messages along one direction in
numba, `messages` and `module` the same in torch with gradients.
"""
