"""The problems of a file: kept up to a number, counted beyond it, and raised together."""

import pytest

from qsctl.declared.problems import NO_FILE, SHOWN_MAX, InvalidFile, Problem, ProblemList, Severity, error_at, refusal
from qsctl.errors import ExitStatus


def test_problems_beyond_the_number_kept_are_counted() -> None:
    problems = ProblemList("f", most=2)
    for line in range(1, 6):
        problems.add(line, "wrong", "x", "y", path="part")
    assert problems.is_full
    assert [each.line for each in problems.problems] == [1, 2]
    assert problems.notes == (
        "f:1: wrong (part; found x)",
        "f:2: wrong (part; found x)",
        "and 3 more that could not be read",
    )


def test_check_raises_errors_with_file_line_path_found_allowed_and_remedy() -> None:
    problems = ProblemList("f")
    problems.add(3, "wrong", "x", "y", path="part", suggestion="Did you mean y?")
    with pytest.raises(InvalidFile) as caught:
        problems.check("the table", "Write it anew.")
    assert caught.value.message == (
        "the table has 1 error\nf:3: error: wrong\n  at part\n  found: x\n  allowed: y\n  Did you mean y?"
    )
    assert caught.value.remedy == "Write it anew."


def test_warnings_alone_are_not_raised() -> None:
    problems = ProblemList("f")
    problems.extend([Problem(Severity.WARNING, "f", 1, "", "odd")])
    problems.check("the table")
    assert problems.errors == []


def test_a_message_shows_the_first_errors_and_counts_the_others() -> None:
    error = InvalidFile([error_at("f", line, "wrong") for line in range(1, SHOWN_MAX + 4)])
    lines = error.message.splitlines()
    assert lines[0] == f"the file has {SHOWN_MAX + 3} errors"
    assert lines[-2:] == [f"f:{SHOWN_MAX}: error: wrong", "… and 3 more"]
    assert len(error.problems) == SHOWN_MAX + 3


def test_only_files_that_are_missing_are_not_found() -> None:
    assert refusal("f", NO_FILE).exit_status is ExitStatus.NOT_FOUND
    assert InvalidFile([error_at("f", 0, NO_FILE), error_at("g", 1, "wrong")]).exit_status is ExitStatus.NO
