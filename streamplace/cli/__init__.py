"""The command line: one command, one file; files beginning with an underscore are shared."""
