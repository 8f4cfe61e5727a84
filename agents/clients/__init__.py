"""Clients that talk to model providers. Imported only by those who ask for one by name."""
