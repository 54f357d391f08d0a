"""Records: classes of named, typed fields, without generated code.

attrs compiles the methods of each class: the import of attrs and the 130 records of pairun took a
third of the CPU time of ``pairun --dry-run JOB``. Here all records share the same five functions,
and the type checker knows the fields by `typing.dataclass_transform` (PEP 681).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")


class _Required:
    """The default of a field that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Field(NamedTuple):
    """What a record knows of a field, except its name and type.

    Attributes:
        default: its value if none is given; `REQUIRED` if one must be.
        factory: makes the default.
        shown: whether ``repr`` shows the value.
        metadata: what the class says about it to others.
        type: its annotation; text in a file that postpones evaluation; None if it has none.
    """

    default: Any = REQUIRED
    factory: Callable[[], Any] | None = None
    shown: bool = True
    metadata: Mapping[str, Any] = {}
    type: Any = None

    def make(self) -> Any:
        """The default; `REQUIRED` if there is none."""
        return self.default if self.factory is None else self.factory()


def field(
    *,
    default: Any = REQUIRED,
    factory: Callable[[], Any] | None = None,
    shown: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Declare a field that needs more than a default; see `Field`."""
    return Field(default, factory, shown, metadata or {})


@overload
def record(cls: type[_T], /) -> type[_T]: ...


@overload
def record(
    *, frozen: bool = True, kw_only: bool = True, eq: bool = True
) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[Any] | None = None,
    /,
    *,
    frozen: bool = True,
    kw_only: bool = True,
    eq: bool = True,
) -> Any:
    """Make a class of annotated fields a record.

    A method that the class defines itself remains.

    Args:
        cls: the class.
        frozen: no field of an instance can be set again, and an instance has a hash.
        kw_only: `__init__` takes keywords only.
        eq: instances of the class are equal if all fields are.
    """

    def made(cls: type[_T]) -> type[_T]:
        methods: dict[str, Any] = {"__init__": _init if kw_only else _init_in_order}
        methods["__repr__"] = _repr
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(cls, name, method)
        cls._record_fields = _fields(cls)  # type: ignore[attr-defined]
        return cls

    return made if cls is None else made(cls)


def _fields(cls: type) -> dict[str, Field]:
    """The fields of a class after those that it inherits; removes their defaults from the class."""
    declared: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        declared |= base.__dict__.get("_record_fields", {})
    for name, annotation in cls.__annotations__.items():
        if str(annotation).removeprefix("typing.").startswith("ClassVar"):
            continue
        default = cls.__dict__.get(name, REQUIRED)
        described = default if isinstance(default, Field) else Field(default)
        declared[name] = described._replace(type=annotation)
        if name in cls.__dict__:
            delattr(cls, name)
    untyped = {name: each for name, each in cls.__dict__.items() if isinstance(each, Field)}
    for name in untyped:
        delattr(cls, name)
    return declared | untyped


def fields(cls: type) -> Mapping[str, Field]:
    """The fields of a record's class by name, in order."""
    declared: dict[str, Field] = cls._record_fields  # type: ignore[attr-defined]
    return declared


def is_record(value: object) -> bool:
    """Whether a class or an instance is a record."""
    return hasattr(value, "_record_fields")


def replace(of: _T, /, **changes: Any) -> _T:
    """A copy of a record with some fields changed."""
    return type(of)(**{name: getattr(of, name) for name in fields(type(of))} | changes)


def as_dict(of: Any) -> dict[str, Any]:
    """The fields of a record by name; records in its mappings and lists become mappings, too."""
    return {name: _plain(getattr(of, name)) for name in fields(type(of))}


def _plain(value: Any) -> Any:
    if is_record(value):
        return as_dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


# --- the methods of every record ----------------------------------------------------------------


def _init(self: Any, **values: Any) -> None:
    declared = self._record_fields
    for name in declared.keys() - values.keys():
        values[name] = declared[name].make()
        if values[name] is REQUIRED:
            raise TypeError(f"{type(self).__name__}: without {name}")
    if len(values) > len(declared):
        unknown = ", ".join(sorted(values.keys() - declared.keys()))
        raise TypeError(f"{type(self).__name__}: no field {unknown}")
    self.__dict__.update(values)


def _init_in_order(self: Any, *given: Any, **values: Any) -> None:
    names = list(self._record_fields)
    repeated = values.keys() & names[: len(given)]
    if len(given) > len(names) or repeated:
        raise TypeError(f"{type(self).__name__}: too many values")
    _init(self, **dict(zip(names, given, strict=False)), **values)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self._record_fields)


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    shown = (
        f"{name}={getattr(self, name)!r}" for name, each in fields(type(self)).items() if each.shown
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name}")
