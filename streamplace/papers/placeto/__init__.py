"""Placeto: a policy that visits every operator once and decides where it goes.

After Addanki et al. (2019), and Wang et al. (2022) for the six orders of the visits. `network`
is the network in numba, `walk` goes from visit to visit, `placing` does so with trained weights;
`policy` is the network in torch, for the learner of all improving policies. Placing needs no torch.
"""
