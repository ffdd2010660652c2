"""The common parts of compiled code: records, random numbers, heap, histogram, log rows, and the compiler itself.

In: addresses of record arrays (`jit.address_of`) and numbers. Out: the same arrays, changed in place.

- `jit.py`: `kernel` and `inlined` decorate every compiled function;
- `ready_made.py`: machine code shipped with a wheel or an image, for the processors of `processor.py`; `object_code.py`
  makes it;
- `_compiler.py`: the only importer of numba, for kernels without ready-made code. It caches compiled code in a
  directory of qsctl's own (`cache_directory.py`), from which `_unused_caches.py` removes files of old versions;
  `compilations.py` reports its work;
- `records.py`: the layout of every array, and the one record that leads to all of them;
- `random.py`: draw n of a stream is a hash of the stream's key and n; `heap.py`, `histogram.py`, `rows.py`.

Invariants: kernels allocate nothing, call back nothing and run without the interpreter lock; with `NUMBA_DISABLE_JIT=1`
they are plain Python that checks every index; importing this package changes no setting of numba that the caller's own
functions would see.

Read first: `records.py`, then `rows.py`.
"""
