"""Copies that the learned placers of the papers call; they go when those placers are plain torch.

All that needs numba is here and in those placers, so that only the extra ``learn`` installs it.
"""
