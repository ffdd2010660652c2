"""The page of environment variables: those of options, from the command line itself, and those read elsewhere."""

from __future__ import annotations

from typing import Final

from qsctl.cli.help._command_tree import commands
from qsctl.cli.help.reference.markdown import code, table, text_in_markdown

ELSEWHERE: Final[dict[str, str]] = {
    "QSCTL_DEBUG": "Set: a fault of qsctl itself shows its trace.",
    "QSCTL_CONFIG": "File of the contexts, in place of `qsctl/config.toml` under `XDG_CONFIG_HOME`.",
    "XDG_CONFIG_HOME": "Folder of the user's configuration; `~/.config`, unless given.",
    "XDG_DATA_HOME": "Folder that completion scripts are installed under; `~/.local/share`, unless given.",
    "BASH_COMPLETION_USER_DIR": "Folder of the user's completion scripts of bash, in place of the former's.",
    "ZDOTDIR": "Folder of zsh's start files, where its completion is installed.",
    "SHELL": "Shell that `qsctl completion install` is for, unless `--shell` names one.",
    "QSCTL_BROKER_USERNAME": "User name for the broker that `--broker` names; before that of a context.",
    "QSCTL_BROKER_PASSWORD": "Password of that user.",
    "QSCTL_BROKER_TOKEN": "Bearer token for the broker, before user name and password.",
    "QSCTL_BROKER_CA_FILE": "Certificates of the authorities that a broker's is checked with, in PEM.",
    "QSCTL_PROMETHEUS_USERNAME": "User name for the Prometheus server of `qsctl trace`; `QSCTL_PROMETHEUS_PASSWORD`, "
    "`QSCTL_PROMETHEUS_TOKEN` and `QSCTL_PROMETHEUS_CA_FILE` as for a broker.",
    "NO_COLOR": "Set: nothing is coloured.",
    "TERM": "`dumb`: nothing is coloured, and pages of help are printed without a pager.",
    "COLUMNS": "Width of the terminal, where it is not known otherwise.",
    "PAGER": "What `qsctl help` shows a page with on a terminal; `less`, unless given.",
    "NDDSHOME": "Directory whose `resource/xml` has default QoS profiles, read first.",
    "NDDS_QOS_PROFILES": "Further files of QoS profiles, separated by `;`, read before the configuration.",
    "JAVA_HOME": "Java for Spark, before one on the path.",
    "PATH": "Where `java` is looked for when `JAVA_HOME` is not set.",
    "PYSPARK_PYTHON": "Python of Spark's executors, where `spark.pyspark.python` names none.",
    "QSCTL_SPARK_CONF": "Settings of Spark as `NAME=VALUE`, separated by `;`; those of `--conf` come first.",
    "QSCTL_SPARK_DRIVER_MEMORY": "Memory of Spark on this machine, as in `4g`.",
    "AWS_ENDPOINT_URL": "Address of an object store that is not Amazon's, for `s3a:` URIs.",
    "AWS_REGION": "Region of the object store; `AWS_DEFAULT_REGION` where it is not set.",
    "AWS_DEFAULT_REGION": "The same, read second.",
    "YARN_CONF_DIR": "Configuration of the cluster, for `--master yarn`.",
    "HADOOP_CONF_DIR": "The same, where the former is not set.",
    "NUMBA_CACHE_DIR": "Folder for compiled kernels of the simulator.",
    "NUMBA_DISABLE_JIT": "`1`: the simulator's kernels are plain Python, for debugging; hundreds of times slower.",
    "QSCTL_KERNELS": "Folder of ready-made kernels of the simulator; else the installation's and the user's.",
    "XDG_CACHE_HOME": "Folder whose `qsctl` has the compiled kernels, where the former is not set.",
    "TMPDIR": "Folder for temporary files.",
    "NOTIFY_SOCKET": "Socket of the supervisor that started a service, by the protocol of systemd.",
    "WATCHDOG_USEC": "Microseconds within which that supervisor wants to hear that the service's loop turns.",
    "WATCHDOG_PID": "Process that the former is for; every one, unless given.",
}
"""Variables without an option, with their meaning in Markdown."""

_HOW = """\
A value on the command line comes before one of the environment, and that before one of the context in use. In a
configuration or a scenario, `$(NAME)` is replaced by the variable `NAME`, unless `--var NAME=VALUE` gives it.

Every option has a variable named after its command, as `QSCTL_PRODUCE_COUNT` for `--count` of `qsctl produce`
(`qsctl help contexts`). The first table has those that options of many commands share."""


def page() -> str:
    """Return the variables of options, then the others."""
    by_variable: dict[str, tuple[str, str, list[str]]] = {}
    for command in commands():
        for each in command.parameters:
            if each.variable:
                known = by_variable.setdefault(each.variable, (each.name, each.help, []))
                known[2].append(command.name)
    every = len(commands())
    rows = [
        (code(name), code(option), text_in_markdown(meaning), _where(listed, every))
        for name, (option, meaning, listed) in sorted(by_variable.items())
    ]
    options = table(("variable", "option", "what it is", "commands"), rows)
    others = table(("variable", "what it is"), ((code(name), meaning) for name, meaning in ELSEWHERE.items()))
    return f"{_HOW}\n\n## Of options\n\n{options}\n\n## Others\n\n{others}"


def _where(listed: list[str], every: int) -> str:
    return f"{len(listed)} of {every}" if len(listed) > 6 else ", ".join(code(name) for name in listed)
