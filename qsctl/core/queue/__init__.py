"""One shared reader queue [QS 2]: its samples, its consumers, its time-outs."""
