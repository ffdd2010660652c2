"""Drivers that step the engine on the wall clock."""
