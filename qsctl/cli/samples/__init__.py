"""Commands that write samples to queues, receive them, and exchange requests and replies."""
