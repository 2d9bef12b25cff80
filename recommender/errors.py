"""The errors this package raises on purpose, each one a line a person can act on; it must not import anything of the package."""

from __future__ import annotations


class RecommenderError(Exception):
    """Something a person fed in, or something shipped, is wrong: `str()` is one clear line for stderr."""


class UsageError(RecommenderError):
    """The command line, a file or a name given by the user cannot be used."""


class RulebookError(RecommenderError):
    """A YAML file of constraints/ or profiles/ does not hold what it must."""


class ExpressionError(RulebookError):
    """An expression leaves the closed language; the message ends with the place, `line` and `column` are 1-based."""

    def __init__(self, message: str, *, text: str, column: int = 1) -> None:
        super().__init__(f"{message} (column {column} of: {text})")
        self.text = text
        self.column = column
