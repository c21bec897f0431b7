"""Columns that look as if they told something about a person: by their names, and by the form of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

_SHARE = 0.6
"""How many of the sampled values must have a form."""

_FEWEST = {"a phone number": 3, "a card number": 3}
"""How many values it takes for a form that other numbers have by chance, too."""

_NAMES = {
    "an e-mail address": r"e_?mail|mail_address",
    "a phone number": r"phone|mobile|cell|fax|tel|telephone|msisdn",
    "a card number": r"card_(no|num|number)|credit_card|cc_(no|num|number)|cvv|cvc",
    "a bank account": r"iban|bic|account_(no|num|number)|routing_number|sort_code",
    "a person's name": r"(first|last|middle|full|maiden|given|family|sur|nick)_?name|surname",
    "a date of birth": r"birth_?(date|day)|date_of_birth|dob|born",
    "an address": r"street|address(_?line_?\d)?|zip|zip_?code|post_?code|postal_?code",
    "an official number": r"ssn|social_security(_\w+)?|passport(_\w+)?|tax_?id|national_id|licen[sc]e_number",
    "a network address of a person": r"ip|ip_?addr(ess)?|remote_addr|client_ip",
    "a secret": r"password|passwd|password_(hash|digest)|pwd|secret|api_key|token|access_token",
    "pay": r"salary|wage|income",
    "something about a person": r"gender|sex|religion|ethnicity|nationality|marital_status|diagnosis",
}
_NAME = {kind: re.compile(rf"(?:^|_)(?:{words})(?:_|$)") for kind, words in _NAMES.items()}


def by_name(column: str) -> str | None:
    """Return what a column with this name probably holds about a person; None if the name says nothing."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", plain)
    return next((kind for kind, name in _NAME.items() if name.search(plain)), None)


def by_values(values: Iterable[str | None]) -> str | None:
    """Return what values of these forms probably are; None if they have no form that tells it."""
    given = [value.strip() for value in values if value and value.strip()]
    for kind, has_form in _FORMS.items():
        alike = sum(map(has_form, given))
        if alike >= _FEWEST.get(kind, 1) and alike >= _SHARE * len(given):
            return kind
    return None


def personal_columns(
    columns: Iterable[str], sampled: Sequence[str], rows: Sequence[Sequence[str | None]]
) -> dict[str, str]:
    """Return a sentence's rest for each column that looks personal, such as "an e-mail address, by its name".

    rows  sampled rows, with the values of the columns in `sampled`
    """
    values = {column: [row[place] for row in rows] for place, column in enumerate(sampled)}
    found = {}
    for column in columns:
        if (kind := by_values(values.get(column, ()))) is not None:
            found[column] = f"{kind}, by its values"
        elif (kind := by_name(column)) is not None:
            found[column] = f"{kind}, by its name"
    return found


def _is_email(value: str) -> bool:
    return re.fullmatch(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+", value) is not None


def _is_iban(value: str) -> bool:
    plain = value.replace(" ", "").upper()
    if re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}", plain) is None:
        return False
    return int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1


def _is_card_number(value: str) -> bool:
    digits = re.sub(r"[ -]", "", value)
    if re.fullmatch(r"[2-6][0-9]{12,18}", digits) is None:
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_phone(value: str) -> bool:
    # A number without any sign could be anything. A date has dashes, too, but is shorter or has colons.
    has_sign = value.startswith(("+", "(", "00")) or re.search(r"\d[ /()-]+\d", value) is not None
    is_date = re.match(r"\d{4}-\d\d-\d\d|\d\d?/\d\d?/\d{4}", value) is not None
    digits = re.sub(r"\D", "", value)
    return (
        has_sign
        and not is_date
        and 7 <= len(digits) <= 15
        and re.fullmatch(r"\+?[\d ()/.-]+(\s?(x|ext\.?)\s?\d+)?", value) is not None
    )


_FORMS: dict[str, Callable[[str], bool]] = {
    "an e-mail address": _is_email,
    "a bank account": _is_iban,
    "a card number": _is_card_number,
    "a phone number": _is_phone,
}
