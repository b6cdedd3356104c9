"""The RNN placer of Mirhoseini et al. (2017, 2018): a sequence of operators in, one of devices out.

`module` is the model in torch, `policy` hands it to the learner of all constructive policies.
"""
