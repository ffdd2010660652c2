"""qsctl: administer, run and simulate message queues, and summarize the runs on Spark."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("qsctl")
except PackageNotFoundError:  # running from a tree that was never installed
    __version__ = "0+unknown"
