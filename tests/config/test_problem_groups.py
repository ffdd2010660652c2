"""Problems that differ in their place alone are one text; the worst come first."""

from qsctl.declared.problems import Problem, Severity, same_problems, text_of_same


def at(severity: Severity, line: int, service: str, message: str = "no file defines the type T") -> Problem:
    return Problem(severity, "f.xml", line, f"dds/queuing_service[{service}]/domain_participant[P]", message, "T")


def test_problems_that_differ_in_their_place_are_one_and_notes_are_last() -> None:
    error = at(Severity.ERROR, 9, "B", "it is wrong")
    notes = [at(Severity.NOTE, 3, "A"), at(Severity.NOTE, 8, "B"), at(Severity.NOTE, 8, "B", "another")]
    texts = [text_of_same(each) for each in same_problems([*notes, error])]
    assert texts == [
        str(error),
        f"{notes[0]}\n  and 1 more like it: line 8; services: A, B",
        str(notes[2]),
    ]
