"""Remote administration as data [QS 5]: commands in, replies out."""
