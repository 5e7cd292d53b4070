import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deniable as dp
from deniable import errors

NAMESPACES = [dp.auditing, dp.learning, dp.losses, dp.survey, dp.synthesis]


@pytest.mark.parametrize(
    "space",
    [dp, *(each for each in NAMESPACES if each is not dp.losses)],
    ids=lambda space: space.__name__,
)
def test_the_stub_names_exactly_what_is_public(space):
    """Type checkers read the stub; so does what loads names when they are first used."""
    tree = ast.parse(Path(space.__file__).with_suffix(".pyi").read_text())
    seen = [
        (alias.name, alias.asname)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert all(name == shown for name, shown in seen)
    assert sorted(name for name, _ in seen) == sorted(space.__all__)
    assert len(seen) == len(set(seen))
    for name in space.__all__:
        assert getattr(space, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = space.nothing


def test_no_name_stands_in_two_places():
    places = [name for space in (dp, *NAMESPACES) for name in space.__all__]
    assert len(places) == len(set(places))
    assert len(dp.__all__) <= 80


@pytest.mark.parametrize("space", [*NAMESPACES, errors], ids=lambda space: space.__name__)
def test_a_name_that_moved_says_where_it_is(space):
    for name in set(space.__all__) - set(dp.__all__):
        with pytest.raises(AttributeError, match=f"^deniable.{name} is {space.__name__}.{name}$"):
            getattr(dp, name)


def test_every_public_name_is_documented():
    for space in (dp, *NAMESPACES):
        for name in space.__all__:
            assert getattr(space, name).__doc__, name


def test_every_error_is_public_and_under_one_root():
    for name in errors.__all__:
        assert getattr(dp, name, getattr(errors, name)) is getattr(errors, name)
        assert issubclass(getattr(errors, name), errors.DeniableError)


def test_importing_is_light():
    code = (
        "import time; start = time.process_time(); import deniable, sys; deniable.Laplace\n"
        "print(time.process_time() - start)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} | "
        "{m for m in sys.modules if m == 'scipy.stats'}))"
    )
    seconds = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        cpu, modules = done.stdout.splitlines()
        seconds.append(float(cpu))
    assert min(seconds) < 0.3
    for heavy in ("pandas", "scipy.stats", "sklearn", "pyspark", "fastapi", "matplotlib", "duckdb"):
        assert f"'{heavy}'" not in modules


def test_no_seed_can_be_given_and_no_insecure_source_is_shipped():
    package = Path(dp.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text()
        assert "np.random" not in text, path
        assert "import random" not in text, path
        if "insecure" in text.lower():
            raise AssertionError(f"{path} ships an insecure source")


def test_errors_pickle_and_say_what_to_do():
    import pickle

    error = errors.ParameterError("epsilon", -1, "must be greater than 0")
    assert str(pickle.loads(pickle.dumps(error))) == "epsilon=-1: must be greater than 0"
    missing = errors.MissingExtraError("pictures", "plot")
    assert str(pickle.loads(pickle.dumps(missing))) == (
        "pictures need an extra package: pip install 'deniable[plot]'"
    )
    assert len(str(errors.ParameterError("x", "y" * 1000, "short"))) < 100
