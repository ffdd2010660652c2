"""The service and its clients on DDS, with Eclipse Cyclone DDS (manual, chapters 2.3 to 2.8, 5, 6 and 9)."""
