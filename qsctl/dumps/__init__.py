"""Listings of an integration engine's recovery and error databases: read from files, and printed as operators know them."""
