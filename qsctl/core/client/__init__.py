"""The client side as state machines [QS 8]: what to send again, what is settled, which reply is whose."""
