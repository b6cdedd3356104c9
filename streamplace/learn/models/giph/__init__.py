"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023).

`view` lays out the gpNet of a problem, a node for every task on every device that may run it.
`measures` says what the nodes and edges look like under a placement, `network` holds the weights
and their arithmetic for one placement, `walk` goes from placement to placement. `module` is the
network in torch, for training, and `policy` hands it to the learner of all improving policies.
Placing needs no torch.
"""
