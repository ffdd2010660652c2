"""The client side as state machines (manual, chapter 8): what to send again, what is settled, which reply is whose."""
