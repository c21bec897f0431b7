"""Mistakes in a lake file: what pydantic finds, in the file's own terms."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from tributary.contract.engines.registry import class_in_file, engine_in
from tributary.contract.entries import toml_key

Content = Mapping[str, Any]
"""The content of a lake file, as TOML has it."""


class Mistake(NamedTuple):
    """The first mistake. `entry` is empty if the file as a whole is wrong."""

    entry: str
    what: str
    found: str
    expected: str
    remedy: str | None


def first_mistake(errors: Sequence[ErrorDetails], content: Content, root: type[BaseModel]) -> Mistake:
    """Word one of pydantic's errors, and count the others. `root` is the layout of the whole file."""
    # A misspelled key also leaves a required key missing. The misspelling is the better explanation.
    error = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    others = len(errors) - 1
    loc = tuple(part for part in error["loc"] if part != "[key]")
    what, found, expected, suggestion = _words(error, loc, content, root)
    remarks = (suggestion, f"Further mistakes in the file: {others}." if others else None)
    entry = _entry_name(loc, content, root) if loc else ""
    return Mistake(entry, what, found, expected, " ".join(filter(None, remarks)) or None)


_EXPECTED_TYPE = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table of entries",
    "model_type": "a table of entries",
    "model_attributes_type": "a table of entries",
    "too_short": "at least one entry",
}


def _words(
    error: ErrorDetails, loc: tuple[int | str, ...], content: Content, root: type[BaseModel]
) -> tuple[str, str, str, str | None]:
    """Return what is wrong, what was found, what was expected, and perhaps which key was meant."""
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            if loc[0] == "table" and isinstance(error["input"], dict):
                expected = 'the name in quotes: [table."source.schema.table"]'
                return "a table's name without quotes", f"[{'.'.join(map(str, loc))}]", expected, None
            known = _keys_at(loc[:-1], content, root)
            suggestion = _suggestion(str(loc[-1]), known)
            return "unknown key", str(loc[-1]), f"one of {', '.join(known)}", suggestion
        case "missing":
            return "a required entry is missing", "nothing", _meaning_of(loc), None
        case "literal_error":
            suggestion = _suggestion(str(error["input"]), re.findall(r"'([^']*)'", context["expected"]))
            expected = context["expected"].replace("'", '"')
            return "wrong value", _shown(error["input"], loc), expected, suggestion
        case "expected":
            return "wrong value", _shown(error["input"], loc), context["expected"], None
        case "greater_than_equal":
            return "wrong value", _shown(error["input"], loc), f"at least {context['ge']}", None
        case "less_than_equal":
            return "wrong value", _shown(error["input"], loc), f"at most {context['le']}", None
        case "multiple_of":
            return "wrong value", _shown(error["input"], loc), f"a multiple of {context['multiple_of']}", None
        case kind:
            return "wrong type", _shown(error["input"], loc), _EXPECTED_TYPE.get(kind, error["msg"]), None


def _keys_at(loc: tuple[int | str, ...], content: Content, root: type[BaseModel]) -> list[str]:
    """Return the keys that are allowed in the part of the file at `loc`."""
    model, _ = _sections_of(loc, content, root)
    return list(model.model_fields)


def _sections_of(
    loc: tuple[int | str, ...], content: Content, root: type[BaseModel]
) -> tuple[type[BaseModel], int]:
    """Return the model of the innermost section in `loc`, and how many parts of `loc` name sections."""
    model = root
    is_name = False
    for depth, part in enumerate(loc):
        if is_name:
            model = class_in_file(model, engine_in(content, str(part)))
            is_name = False
            continue
        field = model.model_fields.get(str(part))
        entry = None if field is None else _entry_in(field.annotation)
        if field is None or entry is None:
            return model, depth
        model, is_name = entry, get_origin(field.annotation) is dict
    return model, len(loc)


def _entry_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation such as `Entry | None` or `dict[str, Entry]` names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_entry_in, get_args(annotation))), None)


def _meaning_of(loc: tuple[int | str, ...]) -> str:
    match loc:
        case ("lake",):
            return 'the section [lake] with name = "…"'
        case ("source",):
            return "at least one section [source.NAME]"
        case _:
            return f"{loc[-1]} = …"


def _suggestion(key: str, known: list[str]) -> str | None:
    close = difflib.get_close_matches(key, known, n=1)
    return f"Did you mean {close[0]}?" if close else None


def _shown(value: object, loc: tuple[int | str, ...]) -> str:
    """Return the value as the file has it, but hide a text that may be a password instead of a variable."""
    if str(loc[-1]).endswith("_env"):
        return "a text of another form" if isinstance(value, str) else f"a {type(value).__name__}"
    match value:
        case dict():
            return "a table of entries"
        case list() | tuple():
            return "[" + ", ".join(_shown(item, ("",)) for item in value) + "]"
        case str() | bool() | int() | float():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _entry_name(loc: tuple[int | str, ...], content: Content, root: type[BaseModel]) -> str:
    """Return `("table", "a.b.c", "key", 1)` as `[table."a.b.c"].key[1]`."""
    _, depth = _sections_of(loc, content, root)
    keys = [toml_key(str(part)) for part in loc[:depth]]
    name = f"[{'.'.join(keys)}]" if keys else ""
    for part in loc[depth:]:
        name += f"[{part}]" if isinstance(part, int) else f"{'.' if name else ''}{toml_key(part)}"
    return name
