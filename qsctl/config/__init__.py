"""Queuing-service XML to settings, in visible steps [QS 3]."""
