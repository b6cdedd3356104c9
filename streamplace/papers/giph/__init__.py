"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023).

`features` computes the features of a node graph under a placement, `network` is the network in
numba, for one placement, `walk` goes from placement to placement and `placing` does so with trained
weights. `policy` is the network in torch, for the learner of all improving policies. Placing needs
no torch.
"""
