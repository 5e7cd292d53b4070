"""A table whose every undeclared cell is a canary, and all the ways in which one could show."""

import contextlib
import copy
import datetime
import pickle
import traceback

import pyarrow as pa

TEXT = "kanarie"
NUMBER = "713131713131713"  # no noise hits 15 digits
MARKS = (TEXT, NUMBER, "1371-3-1", "1371-03-1", "1371, 3, 1")
ROWS = 10

COLUMNS = {"who": "text", "name": "text", "pay": "integer", "size": "number", "born": "date"}
COLUMNS |= {"ward": "text"}
DECLARED = {
    "unit": "who",
    "population": "people",
    "bounds": {"pay": (0, 10**18), "size": (0, 1)},
    "keys": {"ward": ["A", "B"]},
    "grid": {"pay": 10**12},
    "max_rows": 2,
    "max_groups": 1,
}


def table():
    """Ten people; only their wards are declared."""
    places = range(ROWS)
    return pa.table(
        {
            "who": [f"{TEXT}-who-{n}" for n in places],
            "name": [f"{TEXT} {n}" for n in places],
            "pay": [int(NUMBER) * 1000 + n for n in places],
            "size": [float(f"0.{NUMBER}{n or 1}") for n in places],
            "born": [datetime.date(1371, 3, 10 + n) for n in places],
            "ward": ["AB"[n % 2] for n in places],
        }
    )


def found(text):
    """The marks in a text, or in bytes."""
    if isinstance(text, bytes):
        return [mark for mark in MARKS if mark.encode() in text]
    return [mark for mark in MARKS if mark in text]


def silent(text, where):
    """No mark is in it."""
    marks = found(text)
    assert not marks, f"{where} shows {marks}: {text[:300]!r}"


def in_files(*folders):
    """No file under these folders holds a mark."""
    read = 0
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                silent(path.read_bytes(), f"the file {path.name}")
                read += 1
    return read


def forms(subject):
    """Every form of an object, by name: as notebooks, logs, debuggers and caches make them."""
    yield "repr", repr(subject)
    yield "str", str(subject)
    yield "format", f"{subject}"
    for name in ("_repr_html_", "_repr_svg_", "_repr_markdown_", "_repr_latex_"):
        if hasattr(type(subject), name):
            yield name, getattr(subject, name)()
    if hasattr(subject, "_repr_mimebundle_"):
        yield "_repr_mimebundle_", repr(subject._repr_mimebundle_())
    yield "vars", repr(attributes(subject))
    for name, make in (("copy", copy.copy), ("deepcopy", copy.deepcopy)):
        made = failing(lambda: make(subject), f"{name} of {type(subject).__name__}")  # noqa: B023
        yield name, repr(made)
        yield f"vars of {name}", repr(attributes(made))
    for protocol in (2, 5):
        made = failing(
            lambda: pickle.dumps(subject, protocol),  # noqa: B023
            f"pickle of {type(subject).__name__}",
        )
        yield f"pickle {protocol}", made or b""


def attributes(subject):
    """What an object holds, in a dictionary or in slots."""
    kept = dict(getattr(subject, "__dict__", {}))
    for kind in type(subject).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(AttributeError):
                kept[name] = getattr(subject, name)
    return kept


def walk(*roots):
    """Search every object of the library that can be reached; how many of each class there are."""
    met, waiting, seen = {}, list(roots), {}
    while waiting:
        subject = waiting.pop()
        if id(subject) in seen or isinstance(subject, str | bytes | int | float | None):
            continue
        seen[id(subject)] = subject
        if isinstance(subject, dict):
            waiting += [*subject.keys(), *subject.values()]
        elif isinstance(subject, list | tuple | set | frozenset):
            waiting += subject
        elif hasattr(subject, "__self__"):  # a method of something
            waiting.append(subject.__self__)
        elif type(subject).__module__.partition(".")[0] == "deniable":
            kind = type(subject).__name__
            met[kind] = met.get(kind, 0) + 1
            for name, form in forms(subject):
                silent(form, f"{name} of {kind}")
            waiting += attributes(subject).values()
    return met


def failing(call, what):
    """What a call gives, or None where it fails; the failure shows nothing, down to its frames."""
    try:
        return call()
    except Exception as error:
        told(error, what)
        return None


def told(error, what):
    """An error, what it came from, and every local variable of their frames."""
    chain = [error]
    for each in chain:
        told = traceback.format_exception(each)
        silent("".join(told) + repr(each) + repr(vars(each)), f"the error of {what}")
        chain += [one for one in (each.__cause__, each.__context__) if one is not None]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            for name, value in frame.f_locals.items():
                with contextlib.suppress(AttributeError):  # half-made copies have no form
                    silent(repr(value), f"{name} in {frame.f_code.co_qualname}, of {what},")
