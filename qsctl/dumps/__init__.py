"""Listings of an integration engine's recovery and error databases: read from files, printed as operators know them."""
