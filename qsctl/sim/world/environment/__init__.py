"""The environment of services and programs: the virtual clock, the network, connections, disks and database files.

Operations and datagrams in; their effects at later instants of the virtual clock out. Decides when something is due,
what a network loses, doubles or delays, and what a disk holds after a loss of power, all from the seed. Does not decide
when a fault begins: that is `faults`; nor what a service makes of it: that is the driver that runs live.

- `agenda.py`: the clock, and the fingerprint of everything that was done;
- `network.py`, `links.py`, `session.py`: datagrams, messages between services, and connections to programs;
- `disk.py`: sectors under a file system; `database.py`: a model of database files on it.

Always: two runs of one seed do the same at the same instants. Read `agenda.py` first, then `disk.py`.
"""
