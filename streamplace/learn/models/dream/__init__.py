"""The three models of the DREAM paper (Ni et al., AAAI 2020).

`features` and `graphs` turn problems into tensors; `graph_encoder`, `sequence_encoder`,
`decisions`, `decoder` and `module` are the models in torch; `policy` hands them to the learner of
all constructive policies; `placing` places with trained weights.
"""
