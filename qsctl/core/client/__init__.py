"""The client side as state machines [QS 8]: what to send again, what was acknowledged, which reply is whose."""
