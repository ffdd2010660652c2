"""A run as a broker's operator would see it: listings, discards by cause, client profiles."""
