"""Remote administration as data (manual, chapter 5): commands in, replies out."""
