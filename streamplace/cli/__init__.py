"""The command line, one file per command; files that begin with an underscore are shared."""
