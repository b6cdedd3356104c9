"""Pilot for one pass: it rebuilds a schedule task by task, knowing the previous one.

`features` describes a problem and a schedule before the first decision, `measures` computes the
effect of running a task on a device, `rollout` goes from task to task. `network` is the network in
numba; `learner` has the same in torch and trains it. Placing (`placing`) needs no torch.
"""
