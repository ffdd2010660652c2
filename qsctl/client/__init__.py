"""Awaitable and blocking wrappers for programs (manual, chapter 8) and administration."""
