"""Scenarios: what is simulated, as dataclasses, as XML, and with single values replaced."""
