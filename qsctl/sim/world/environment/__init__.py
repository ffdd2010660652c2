"""The environment of services and programs: the virtual clock, the network, connections, disks and database files.

Operations and datagrams in; their effects at later instants of the virtual clock out. Decides when something is due,
which datagrams a network loses, duplicates or delays, and what a disk holds after a power failure, all from the seed.
Does not decide when a fault begins (`faults` does), nor how a service reacts to one (the live driver does).

- `agenda.py`: the clock, and the fingerprint of everything that happened;
- `network.py`, `links.py`, `session.py`: datagrams, messages between services, and connections to programs;
- `disk.py`: sectors under a file system; `database.py`: a model of database files on it.

Always: two runs of one seed do the same at the same instants. Read `agenda.py` first, then `disk.py`.
"""
