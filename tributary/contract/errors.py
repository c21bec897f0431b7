"""Errors for a person: what is wrong, where, what was found, what was expected, and what to do."""

from __future__ import annotations

import re

from tributary.contract.remedies import RemedyOrText, Words, as_sentence, in_words, plain_words, remedies_of


class TributaryError(Exception):
    """A mistake or a failure that a person can act on. `str()` of it is one paragraph, without a traceback.

    what      the sentence that says what is wrong, without a full stop
    where     the file and entry, the server, the table or the command
    found     the actual value or state
    expected  the value or state that would be right
    remedy    what to do: one remedy or several; a text stands for advice without a command
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        remedy: RemedyOrText = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.remedies = remedies_of(remedy)

    @property
    def reason(self) -> str:
        """One sentence that says what is wrong, but not what to do."""
        sentence = f"{self.where}: {self.what}" if self.where else self.what
        facts = [
            f"{label} {fact}" for label, fact in (("found", self.found), ("expected", self.expected)) if fact
        ]
        return as_sentence(f"{sentence}: {', '.join(facts)}" if facts else sentence)

    def text(self, words: Words) -> str:
        """Return what is wrong and what to do as one paragraph, in the words of a surface."""
        return " ".join([self.reason, *([in_words(self.remedies, words)] if self.remedies else [])])

    def __str__(self) -> str:
        return self.text(plain_words)


def told_by(error: BaseException) -> str:
    """Return what an error of a library says, without a stack of calls, which tells a person nothing.

    Py4J's text has Java's error behind a colon, then Java's calls, and among them the errors that caused it.
    """
    lines = [line for line in str(error).partition("JVM stacktrace:")[0].splitlines() if line.strip()]
    of_java = [line for line in lines if line.startswith((": ", "Caused by: "))]
    if not of_java:
        return f"{type(error).__name__}: {' '.join(line.strip() for line in lines if not _is_call(line))}"
    first, *causes = [
        _without_packages(line.removeprefix(": ").removeprefix("Caused by: ")) for line in of_java
    ]
    return first if not causes or causes[-1] in first else f"{first}, caused by {causes[-1]}"


def _is_call(line: str) -> bool:
    return line.lstrip().startswith(("at ", "... "))


def _without_packages(text: str) -> str:
    """Return Java's line with the classes of its errors as `TimeoutException`, without their packages."""
    return re.sub(r"(?<![\w.])(?:[a-z][\w]*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)", "", text)
