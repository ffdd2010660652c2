"""The page that a refused request gets: one paragraph, without scripts, styles or files."""

from __future__ import annotations

from html import escape


def refusal_page(words: str) -> str:
    """Return an HTML page with one paragraph; `words` is escaped."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>qsctl web: refused</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"></head>'
        f"<body><main><h1>Refused</h1><p>{escape(words)}</p></main></body></html>"
    )
