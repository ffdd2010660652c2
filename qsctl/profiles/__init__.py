"""Client profiles of message brokers [SOL-QUEUES] in every format, and the listings that show what became of them.

In: files of client profiles (SEMP v2 and v1, CLI scripts, Terraform, Ansible, XML, listings) and captured listings.
Out: frozen `ClientProfile`s and the models of `listings`, written again in any format; findings, differences and sizes.

- `setting.py`, `ranges.py`: the one table of settings: kind, range, default, source, and its name in each format;
- `client_profile.py`: the dataclass; `names.py`: suggestions;
- `formats/`: a reader and a writer for each format; `listings/`: what a broker's `show` commands print;
- `lint.py`: what a profile does that its operator may not mean; `difference.py`; `sizing.py`: the arithmetic of a load.

Invariants: readers and writers follow the table, so that a setting is described once; what a format cannot hold is an
error or a finding, never dropped in silence; every problem of a file is reported in one run, with its line.

Read first: `ranges.py`, then `client_profile.py`.
"""
