"""The invariants of a world, which hold under all faults: P1 to P12, P14 and P15, each a small observer.

- `base.py`: an invariant, its violations, and the ledger of the records on each service's disk;
- `samples.py`: P1, P2, P3, P11: the outcome of a sample, seen from its producer and from the stored records;
- `deliveries.py`: P4, P8, P9: the deliveries to consumers; `replicas.py`: P5, P6: masters and committed entries;
- `stores.py`: P7, P10: the content of disks; `liveness.py`: P12; `configuration.py`: P14; `strangers.py`: P15.

P13, equal seeds give equal histories, is tested by comparing two runs' fingerprints (`results/verdict.py`);
`results/_client_view.py` judges by the programs' view alone.
"""
