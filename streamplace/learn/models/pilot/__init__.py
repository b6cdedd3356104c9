"""Pilot: a policy that places operators one by one, seeing what every device already carries.

`features` describes a problem before the first decision and fixes the order of the decisions,
`measures` computes the effect of placing an operator on a device, `rollout` goes from decision to
decision. `network` is the network in numpy, `module` the same in torch, with gradients; `learner`
trains it. Placing (`placing`) needs no torch.
"""
