"""Our own queuing service under virtual time."""
