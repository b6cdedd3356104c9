"""HSDAG: learns how to group operators, how many groups there are, and where each goes.

After Duan et al. (2024). `module` is the model, with the parsing of edge scores into groups;
`policy` hands it to the learner of all constructive policies.
"""
