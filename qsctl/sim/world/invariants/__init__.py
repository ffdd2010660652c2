"""The invariants of a world, which hold under all faults: P1 to P15, each a small observer.

- `base.py`: an invariant, its verdict, and the ledger of what each service's disk holds;
- `samples.py`: P1, P2, P3, P11: the outcome of a sample, seen from its producer and from the stored records;
- `deliveries.py`: P4, P8, P9: the deliveries to consumers;
- `stores.py`: P7, P10: the content of disks; `liveness.py`: P12; `configuration.py`: P14; `strangers.py`: P15.

P13, the same seed gives the same history, is two runs compared, see `results/verdict.py`;
`results/client_view.py` judges by the programs' view alone.
"""
