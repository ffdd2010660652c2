"""Listings of a broker's CLI and replies of SEMP v1: read to one model, and written as the broker writes them."""
