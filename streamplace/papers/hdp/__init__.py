"""The RNN placer of Mirhoseini et al. (2017): reads operators in sequence, then places."""
