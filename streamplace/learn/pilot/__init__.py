"""Pilot: a policy that places operators one by one, seeing what every device already carries.

`view` says what it sees of a problem, `rollout` walks through the operators and measures the
devices at every step, `network` holds the weights and their arithmetic in numpy, `module` the same
arithmetic in torch, `learner` how the weights come about. Placing needs no torch.
"""
