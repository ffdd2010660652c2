"""One shared reader queue [QS 2]: what it keeps, whom it serves, when it gives up."""
