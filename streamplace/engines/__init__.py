"""Exports to engines, and control of running engines: one engine, one file or folder.

Graphs of other programs are read in `streamplace.io`.
"""
