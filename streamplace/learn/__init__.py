"""Learned placers: everything that imports torch lives here, and nothing else imports it early."""
