"""Client profiles of message brokers in every format, and the listings that show what became of them."""
