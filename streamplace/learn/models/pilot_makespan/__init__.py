"""Pilot for one pass. A schedule is made anew, task by task, in sight of the one before.

`features` says what it sees of a problem and of a schedule before it begins, `measures` what
running a task on a device would do, `rollout` how it goes from task to task. `network` holds the
weights, `module` the same in torch, `learner` says how they come about. Placing (`placing`) needs
no torch.
"""
