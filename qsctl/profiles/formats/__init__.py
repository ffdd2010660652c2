"""The formats of client profiles: one module each, with a reader and a writer that follow the table of settings."""
