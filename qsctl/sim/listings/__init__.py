"""A run as the listings of a broker's operator: listings, discards by cause, client profiles.

In: a run folder of an egress model, and the number of a repetition. Out: the models of `profiles.listings`, which write
themselves as the broker's CLI or SEMP does; for discards, each cause with the command that checks its remedy.

- `run_state.py`: the state of each client at the end of a run folder: counters, slowness, connections;
- `broker_listings.py`: the same as `show client … stats queue` and its siblings;
- `discards.py`: discards by cause, where most of each were;
- `broker_profile.py`: a scenario's profile as `show client-profile … detail` lists it.

Invariants: nothing is guessed: a figure that the log does not hold is None, and the listing leaves it out.

Read first: `run_state.py`.
"""
