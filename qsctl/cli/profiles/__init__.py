"""Commands on the client profiles of brokers."""
