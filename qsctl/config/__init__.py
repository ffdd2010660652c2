"""Queuing-service XML to settings, in visible steps (manual, chapter 3)."""
