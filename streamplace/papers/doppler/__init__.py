"""Doppler: two policies in turn, one for the next task and one for its device (Yao et al. 2025)."""
