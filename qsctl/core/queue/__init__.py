"""One shared reader queue (manual, chapter 2): what it keeps, whom it serves, when it gives up."""
