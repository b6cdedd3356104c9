"""Compilation of the kernels that common commands need: once, in parallel, and announced.

Kernels are compiled when they are called (`streamsim.jit`). The first command that has to compile
one compiles those of all rehearsals first. ``python -m streamplace.kernels`` does so on its own,
during an installation or while an image is built.
"""
