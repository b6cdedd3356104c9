"""HSDAG: learns how to group operators, how many groups there are, and where each goes.

After Duan et al. (2024). `parsing` makes groups of edge scores, `module` is the model, `policy`
hands it to the learner of all constructive policies.
"""
