"""Remote administration [QS 5] as plain data: typed commands in, replies out."""
