"""The transports that carry messages between a service and its clients: DDS."""
