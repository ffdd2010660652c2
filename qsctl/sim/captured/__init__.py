"""Scenarios made from the listings of a broker, and the comparison of their predictions with the captured figures.

In: one or two captures (`profiles.listings`), and client profiles. Out: a scenario whose values are captured, derived
or assumed, and listed as such; and for a scenario, how far its discards, depths and slow subscribers are from the
captured ones, with the parameter of each troubled client that explains them best.

- `observed.py`: rates, sizes and limits of each client, from counters and their differences;
- `scenario.py`: groups of similar clients, their traffic, and the parameter that limits each slow client;
- `calibration.py`: predicted against captured, and the fit of one parameter, with its interval.

Invariants: a value that no capture contains is assumed and listed by its path; the interval of a fitted parameter
contains the true value with the stated confidence, which `tests/sim/captured` checks by simulation.

Read first: `observed.py`.
"""
