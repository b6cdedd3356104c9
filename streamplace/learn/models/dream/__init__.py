"""The three models of the DREAM paper (Ni et al., AAAI 2020) and how they learn.

`features` and `graphs` turn problems into tensors; `graph_encoder`, `sequence_encoder`,
`decisions`, `recurrence`, `decoder` and `policy` are the model; `teaching` hands it to the learner
of all constructive policies; `placing` places with trained weights.
"""
