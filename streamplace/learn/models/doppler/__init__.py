"""Doppler: two policies in turn, one for which task comes next, one for where it goes.

After Yao et al. (2025). `features` holds what is computed of a problem before the first decision,
`episode` decides task by task, `module` holds the networks in torch, `policy` brings them together.
Messages pass once per episode: what changes from step to step are five numbers about every device,
so a step takes no torch.
"""
