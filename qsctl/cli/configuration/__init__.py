"""Commands on configuration files."""
