"""qsctl: administer, run and simulate message queues, and summarize the runs on Spark."""

__version__: str


def __getattr__(name: str) -> str:
    """Look the version up when somebody asks for it: it takes longer than all else before the program's first line.

    Raises:
        AttributeError: there is no such name.
    """
    if name != "__version__":
        raise AttributeError(f"module 'qsctl' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("qsctl")
    except PackageNotFoundError:  # running from a tree that was never installed
        found = "0+unknown"
    globals()["__version__"] = found
    return found
