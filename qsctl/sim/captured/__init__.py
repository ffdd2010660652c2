"""From what a broker lists to a scenario of it, and back: what the scenario predicts beside what was captured.

In: one or two captures (`profiles.listings`), and client profiles. Out: a scenario whose values are captured, derived
or assumed, and listed as such; and for a scenario, how far its discards, depths and slow subscribers are from the
captured ones, with the parameter of each troubled client that explains them best.

- `observed.py`: rates, sizes and limits of each client, from counters and their differences;
- `scenario.py`: groups of clients alike, their traffic, and what limits the slow ones;
- `calibration.py`: predicted against captured, and the fit of one parameter, with its interval.

Invariants: a value that no capture has is assumed and listed by its path; an interval keeps what it states, which
`tests/sim/captured` checks by simulation.

Read first: `observed.py`.
"""
