"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023).

`features` says what the nodes and edges of a problem's node graph look like under a placement,
`network` holds the weights and their arithmetic for one placement, `walk` goes from placement to
placement and `placing` does so with trained weights. `module` is the network in torch, and `policy`
hands it to the learner of all improving policies. Placing needs no torch.
"""
