"""Settings of the commands, as command line, Python and settings files give them."""
