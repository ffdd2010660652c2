"""The transports that carry messages: inside the process, or over DDS."""
