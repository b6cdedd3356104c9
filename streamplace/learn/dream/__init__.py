"""The three models of the DREAM paper (Ni et al., AAAI 2020) and how they learn.

`features`, `orders` and `graphs` turn problems into tensors; `graph_encoder`, `sequence_encoder`,
`decisions`, `recurrence`, `decoder` and `policy` are the model; `memory`, `exploration` and
`reinforce` train it; `placing` places with trained weights.
"""
