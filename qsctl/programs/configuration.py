"""`qsctl.validate`, `qsctl.render` and `qsctl.diff`: check, resolve and compare configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from qsctl.cli.configuration import difference, effective
from qsctl.cli.configuration import validate as validation
from qsctl.programs.called import assignments, called
from qsctl.programs.command_result import CommandResult


def validate(
    *files: str | PathLike[str],
    variables: Mapping[str, str] | None = None,
    config_name: str | None = None,
    strict: bool = False,
    default_files: bool = True,
    without_tcp: bool = False,
) -> CommandResult[validation.Validation]:
    """Check configuration files against the schema and the rules, as `qsctl validate` does.

    An invalid file is reported in the result, not by an exception: a row for each problem, and `content.valid`.

    Args:
        files: configuration files, or literals such as 'str://"<dds>…</dds>"'.
        variables: values of `$(NAME)` in the XML, as with `--var`.
        config_name: the `<queuing_service>` to read; None: the only one.
        strict: count warnings as errors, and refuse lenient spellings.
        default_files: load `USER_QOS_PROFILES.xml` and the other default files before [QS 3.1].
        without_tcp: use UDP alone where a participant requires plain TCP.

    Returns:
        A row for each problem, with `severity`, `file`, `line`, `path`, `message`, `found`, `allowed` and `suggestion`.

    Raises:
        UsageError: the name of a variable is invalid.

    >>> import qsctl
    >>> text = '<dds><queuing_service name="A"><domain_id>x</domain_id></queuing_service></dds>'
    >>> found = qsctl.validate(f'str://"{text}"')
    >>> found.content.valid, found[0]["severity"], found[0]["path"]
    (False, 'error', 'dds/queuing_service[A]/domain_id')
    """
    return called(
        lambda: validation.validate(
            [fspath(file) for file in files],
            var=assignments(variables),
            config_name=config_name,
            strict=strict,
            default_files=default_files,
            without_tcp=without_tcp,
        )
    )


def render(
    *files: str | PathLike[str],
    variables: Mapping[str, str] | None = None,
    config_name: str | None = None,
    origins: bool = False,
    path: str | None = None,
    domain_id_base: int = 0,
    default_files: bool = True,
) -> CommandResult[effective.EffectiveConfiguration]:
    """Return the effective configuration, with variables, inheritance and defaults resolved, as `qsctl render` does.

    Args:
        files: configuration files, in the order they are loaded, or literals such as 'str://"<dds>…</dds>"'.
        variables: values of `$(NAME)` in the XML, as with `--var`.
        config_name: the `<queuing_service>` to read; None: the only one.
        origins: give each row its `origin`: a file's line, a default, or an inherited value.
        path: pattern of the paths of the rows, as in `*redelivery*`; None: all.
        domain_id_base: number that is added to every domain id.
        default_files: load `USER_QOS_PROFILES.xml` and the other default files before [QS 3.1].

    Returns:
        A row for each value, with `path` and `value`; `content.xml()` is the canonical XML.

    Raises:
        InvalidFile: a file is not valid.
        NotFound: a file does not exist, or no value's path matches.

    >>> import qsctl
    >>> sessions = '<session_settings><session name="T"/></session_settings>'
    >>> subscriber = f'<shared_subscriber name="S">{sessions}</shared_subscriber>'
    >>> participant = f'<domain_participant name="P"><domain_id>7</domain_id>{subscriber}</domain_participant>'
    >>> literal = f'str://"<dds><queuing_service name="A">{participant}</queuing_service></dds>"'
    >>> [row["value"] for row in qsctl.render(literal, path="*domain_id")]
    ['7']
    """
    return called(
        lambda: effective.render_configuration(
            [fspath(file) for file in files],
            config_name=config_name,
            var=assignments(variables),
            origins=origins,
            path=path,
            domain_id_base=domain_id_base,
            default_files=default_files,
        )
    )


def diff(
    first: str | PathLike[str],
    second: str | PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    config_name: str | None = None,
    default_files: bool = False,
) -> CommandResult[difference.ConfigurationDifference]:
    """Compare two configurations semantically, with defaults applied and order ignored, as `qsctl diff` does.

    Args:
        first: configuration file, or several separated by semicolons, or a literal.
        second: the configuration that it is compared with.
        variables: values of `$(NAME)` in the XML, as with `--var`.
        config_name: the `<queuing_service>` of both; None: the only one.
        default_files: load `USER_QOS_PROFILES.xml` and the other default files before [QS 3.1].

    Returns:
        A row for each difference, with `path`, `change`, `first` and `second`; `content.same`, and `content.unified`, a
            unified diff of the XML.

    Raises:
        InvalidFile: a file is not valid.
        NotFound: a file does not exist.

    >>> import qsctl
    >>> sessions = '<session_settings><session name="T"/></session_settings>'
    >>> subscriber = f'<shared_subscriber name="S">{sessions}</shared_subscriber>'
    >>> one, other = (
    ...     f'<domain_participant name="P"><domain_id>{each}</domain_id>{subscriber}</domain_participant>'
    ...     for each in (1, 2)
    ... )
    >>> text = 'str://"<dds><queuing_service name="A">{}</queuing_service></dds>"'
    >>> [(row["change"], row["first"], row["second"]) for row in qsctl.diff(text.format(one), text.format(other))]
    [('changed', '1', '2')]
    """
    return called(
        lambda: difference.diff(
            fspath(first), fspath(second), config_name=config_name, var=assignments(variables),
            default_files=default_files,
        )
    )  # fmt: skip
