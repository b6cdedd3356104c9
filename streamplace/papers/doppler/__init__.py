"""Doppler: two policies in turn, one for the next task and one for its device (Yao et al. 2025).

Messages pass once per episode: only five numbers about every device change from step to step, so a
step needs no torch.
"""
