"""Reports of a module's own errors, with its file and line."""

from __future__ import annotations

import traceback

from pairun.contract.results import BadResult, Report, failure
from pairun.module import CheckModule, Module


def bad_result(module: Module, error: BadResult) -> Report:
    """The report of an attempt whose module returned an invalid result."""
    place = _raised_at(module, error) or _begin_of(module, error.method)
    return failure(
        f"{type(module).__name__} returned an invalid result: {error}{place}",
        hint="this is an error of the module",
    )


def unforeseen(module: Module, error: BaseException) -> Report:
    """The report of an unexpected error in a module, with its traceback."""
    return failure(
        f"{type(module).__name__} raised {described(error)}{_raised_at(module, error)}",
        hint="this is an error of the module; `pairun report` shows its trace",
        trace=trace_of(error),
    )


def described(error: BaseException) -> str:
    """An exception's type and message; its type alone if it has no valid message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - __str__ of an unknown class
        return type(error).__name__


def trace_of(error: BaseException) -> str:
    """The end of an error's traceback, for the journal."""
    try:
        return "".join(traceback.format_exception(error, limit=-12))
    except Exception:  # noqa: BLE001 - __str__ of an unknown class
        return ""


def _raised_at(module: Module, error: BaseException | None) -> str:
    """The module's file and line in an error's traceback, or in that of an error before it."""
    # A module in a folder has several files, all with the same prefix.
    root = ".".join(type(module).__module__.split(".")[:2])
    while error is not None:
        place, trace = "", error.__traceback__
        while trace is not None:
            name = str(trace.tb_frame.f_globals.get("__name__"))
            if name == root or name.startswith(root + "."):
                place = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
            trace = trace.tb_next
        if place:
            return place
        error = error.__context__
    return ""


def _begin_of(module: Module, method: str) -> str:
    """File and line where a method begins; by default the method that returned the result."""
    method = method or ("check" if isinstance(module, CheckModule) else "apply")
    code = getattr(getattr(type(module), method, None), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
