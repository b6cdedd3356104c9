"""Pilot: a policy that places operators one by one, seeing what every device already carries.

`features` says what it sees of a problem before it begins, `order` in which order it decides,
`measures` what placing an operator on a device would do, `rollout` how it goes from decision to
decision. `network` holds the weights and their arithmetic in numpy, `module` the same in torch.
`learner` says how the weights come about, with `alternatives` to what was decided and `variety` in
clusters. Placing (`placing`) needs no torch.
"""
