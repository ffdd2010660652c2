"""Named services and brokers (contexts) in a file of the user, one of which is in use by default."""
