"""Pictures: graphs as boxes and arrows, and figures with axes."""
