"""What an error must tell a person: what is wrong, where, what was found and expected, and what to do."""

from __future__ import annotations


class TributaryError(Exception):
    """A mistake or a failure that a person can act on; `str()` of it is one paragraph, without a traceback.

    what      the sentence that says what is wrong, without a full stop
    where     the file and entry, the server, the table or the command it concerns
    found     what is there
    expected  what ought to be there
    remedy    what to do, as a sentence
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        sentence = f"{self.where}: {self.what}" if self.where else self.what
        facts = [
            f"{label} {fact}" for label, fact in (("found", self.found), ("expected", self.expected)) if fact
        ]
        if facts:
            sentence = f"{sentence}: {', '.join(facts)}"
        return " ".join([_as_sentence(sentence), *([_as_sentence(self.remedy)] if self.remedy else [])])


def _as_sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
