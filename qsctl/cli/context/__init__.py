"""Named services: one file of the user's has their locations, and one of them is in use."""
