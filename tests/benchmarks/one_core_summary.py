"""A summary in a process of its own, whose tasks have one thread: `one_core_summary.py RUN WARM_UP_ROUNDS ROUNDS`.

Says READY when it is warm, waits for a line, and prints the seconds of its quickest round. Several at once show what
the machine gives to programs that have nothing in common.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from qsctl.summary import job
from qsctl.summary.session import SparkOptions


def main() -> None:
    run, warm_up_rounds, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    options = SparkOptions(master="local[1]", conf={"spark.driver.extraJavaOptions": "-XX:ActiveProcessorCount=1"})
    taken_s = []
    for number in range(warm_up_rounds + rounds):
        if number == warm_up_rounds:
            sys.stdout.write("READY\n")
            sys.stdout.flush()
            sys.stdin.readline()
        began_s = time.perf_counter()
        job.summarize_run(run, measures=job.ALL, options=options)
        taken_s.append(time.perf_counter() - began_s)
    sys.stdout.write(f"{min(taken_s[warm_up_rounds:])}\n")


if __name__ == "__main__":
    main()
