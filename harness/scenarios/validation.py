"""Validation of TOML tables with pydantic: errors of models become problems with the line of their key or value."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from harness.model.errors import UsageError
from harness.toml import Findings, Key, list_choices

#: Maximum length of a value in an error.
ERROR_LENGTH = 100


class TomlTable(BaseModel):
    """A table of TOML. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


Model = TypeVar("Model", bound=TomlTable)


def validate(model: type[Model], values: Any, findings: Findings, key: Key = (), context: Any = None) -> Model | None:
    """Return the model of the table at `key`. If the table has errors, add them to `findings` and return None."""
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            _add_finding(details, model, findings, key)
        return None


def _add_finding(error: ErrorDetails, model: type[TomlTable], findings: Findings, key: Key) -> None:
    """Add an error of a model to `findings`, as a sentence with the line of its key or value."""
    # pydantic adds parts in brackets, for keys of dictionaries and for cases of unions
    location = tuple(part for part in error["loc"] if not str(part).startswith("["))
    key, kind, value, context = (*key, *location), error["type"], error["input"], error.get("ctx", {})
    name, names = f"`{findings.name(key)}`", [part for part in key if isinstance(part, str)]
    table, field = _find_field(model, [part for part in location if isinstance(part, str)])
    is_table = kind in ("dict_type", "model_type") or (field and next(_find_tables(field.annotation), None))
    value = "" if isinstance(value, dict | list) else value
    shown = repr(value) if isinstance(value, str) else str(value).lower()
    shown = f" {shown if len(shown) <= ERROR_LENGTH else f'{shown[:ERROR_LENGTH]}…'}" if value != "" else ""
    problem = error["msg"].replace("Input should be", "expected").replace(" after validation", "")
    problem = re.sub("a valid dictionary.*", "a table", f"{problem[0].lower()}{problem[1:]}")
    example = " or ".join((field and field.examples) or ())
    if not example and is_table:
        example = "[[PATH]]" if kind == "list_type" or isinstance(key[-1], int) else "[PATH]"
    if not example and kind in ("list_type", "string_type", "too_short"):
        example = f'NAME = "{value}"' if kind == "string_type" and key[-1] == names[-1] else 'NAME = ["one", "other"]'
    example = example.replace("NAME", names[-1]).replace("PATH", ".".join(names))
    advice = context.get("advice") or (f"Example: {example}" if example else "")
    text = f"Invalid {name}{shown}: {problem}."
    if kind == "extra_forbidden":
        text, advice = f"{name} is not a known key.", list_choices(names[-1], table.model_fields, "keys")
    elif kind == "missing" or error["input"] == "":
        text = f"Missing {name}." if kind == "missing" else f"Missing {name}: {problem}."
    findings.add(key, text, advice, value=context.get("value", str(value)))


def _find_field(model: type[TomlTable], names: Sequence[str]) -> tuple[type[TomlTable], FieldInfo | None]:
    """Return the table that contains the last key, and the field of the key or of the dictionary that contains it."""
    field = None
    for name in names[:-1]:
        if field := model.model_fields.get(name):
            model = next(_find_tables(field.annotation), model)
    dictionary_field = field if field and get_origin(field.annotation) is dict else None
    return model, model.model_fields.get(names[-1], dictionary_field) if names else None


def _find_tables(annotation: Any) -> Iterator[type[TomlTable]]:
    """Yield the table models in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, TomlTable):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_tables(argument)


def make_invalid_error(problem: str, advice: str = "", value: str = "") -> PydanticCustomError:
    """Return an error for pydantic. If `value` is given, the error is reported on the line of the value."""
    return PydanticCustomError(
        "invalid", "{problem}", {"problem": problem, "advice": advice, **({"value": value} if value else {})}
    )


def make_error(location: Key, value: Any, problem: str, advice: str = "") -> InitErrorDetails:
    """Return an error at `location` in the value that is validated."""
    return InitErrorDetails(type=make_invalid_error(problem, advice), loc=location, input=value)


def raise_errors(errors: Iterable[InitErrorDetails]) -> None:
    """Raise ValidationError if there are errors."""
    if line_errors := list(errors):
        raise ValidationError.from_exception_data("table", line_errors)


def make_validator(
    read: Callable[[Any], Any], problem: str, advice: str = "", *, converts: bool = False
) -> AfterValidator:
    """Return a validator that refuses a value if `read` raises ValueError or UsageError, or returns None or False."""

    def check(value: Any) -> Any:
        try:
            result = read(value)
        except UsageError as error:
            raise make_invalid_error(problem, f"{error.message} {error.advice}") from None
        except ValueError:
            result = None
        if result is None or result is False:
            raise make_invalid_error(problem, advice)
        return result if converts else value

    return AfterValidator(check)
