"""How messages travel: inside the process, or over DDS."""
