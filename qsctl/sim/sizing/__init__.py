"""What `qsctl size` and `client-profile size` ask of the simulator: targets, settings to vary, memory, a load."""
