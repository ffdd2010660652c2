"""The results of a simulated run as a broker's operator sees them: listings, discards by cause, client profiles.

In: a run folder of an egress model, and the number of a repetition. Out: the models of `profiles.listings`, which are
written in the format of the broker's CLI or SEMP; for discards, each cause with the command that checks its remedy.

- `run_state.py`: the state of each client at the end of a run folder: counters, slowness, connections;
- `broker_listings.py`: the same as `show client … stats queue` and its siblings;
- `discards.py`: discards by cause, with the queue that lost most by each;
- `broker_profile.py`: a scenario's profile as `show client-profile … detail` lists it.

Invariants: no figure is guessed: one that the log does not contain is None, and is left out of the listing.

Read first: `run_state.py`.
"""
