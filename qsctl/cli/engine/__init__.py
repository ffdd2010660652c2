"""Commands on the integration engine and its databases."""
