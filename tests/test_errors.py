"""Exit codes and hints of errors."""

from __future__ import annotations

import pytest

from mcpspy import errors
from mcpspy.errors import CannotStart, McpspyError, UsageError


@pytest.mark.parametrize(("error", "code"), [(McpspyError, 1), (UsageError, 2), (CannotStart, 3)])
def test_every_error_has_its_exit_code(error: type[McpspyError], code: int) -> None:
    assert error.exit_code == code
    assert issubclass(error, McpspyError)


def test_an_error_states_the_problem_and_then_the_hint() -> None:
    assert str(UsageError("no such file: x")) == "no such file: x"
    assert str(UsageError("no such file: x", "see mcpspy ls")) == "no such file: x (see mcpspy ls)"
    assert UsageError("x", "y").hint == "y"


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    found = [
        error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, McpspyError)
    ]
    assert errors.__doc__ is not None
    for error in found:
        (line,) = [line for line in errors.__doc__.splitlines() if f" {error.__name__} " in line]
        assert line.split(error.__name__)[1].split()[0] == str(error.exit_code)
