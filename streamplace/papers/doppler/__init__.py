"""Doppler: two policies in turn, one for which task comes next, one for where it goes.

After Yao et al. (2025). `features` are computed before the first decision, `episode` decides task
by task, `module` holds the networks in torch, `policy` combines them. Messages pass once per
episode: only five numbers about every device change from step to step, so a step needs no torch.
"""
