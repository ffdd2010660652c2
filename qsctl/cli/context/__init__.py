"""Named services: where each is stands in one file of the user's, and one of them is in use."""
