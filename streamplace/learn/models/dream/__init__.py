"""The three models of the DREAM paper (Ni et al., AAAI 2020).

`graphs` turns problems into tensors; `module` (the encoders and the whole model) and `decoder` are
the models in torch; `policy` places with them, for the learner of all constructive policies and
with trained weights.
"""
