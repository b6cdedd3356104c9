"""Settings of the verbs, as command line, Python and settings files give them."""
