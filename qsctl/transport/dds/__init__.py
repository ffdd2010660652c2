"""The service and its clients on DDS, with Eclipse Cyclone DDS [QS 2.3 to 2.8, 5, 6 and 9].

Applications without qsctl have the package `plain`; all else is for qsctl's own clients.
"""
