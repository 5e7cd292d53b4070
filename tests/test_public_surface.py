import ast
import subprocess
import sys
import types
from pathlib import Path

import pytest

import deniable as dp
from deniable import errors


def test_all_is_exactly_what_is_public():
    assert set(dp._HOME) == set(dp.__all__) == {n for n in dir(dp) if not n.startswith("_")}
    assert len(dp.__all__) == len(set(dp.__all__))
    for name in dp.__all__:
        getattr(dp, name)
    visible = {
        name
        for name, value in vars(dp).items()
        if not name.startswith("_")
        and (name in dp.__all__ or not isinstance(value, types.ModuleType))
    }
    assert visible - {"TYPE_CHECKING", "annotations", "import_module"} == set(dp.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = dp.nothing


def test_what_type_checkers_see_is_what_is_loaded():
    """The imports under TYPE_CHECKING name the same homes as the table."""
    tree = ast.parse(Path(dp.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == dp._HOME


def test_every_public_name_is_documented():
    for name in dp.__all__:
        assert getattr(dp, name).__doc__, name


def test_every_error_is_public_and_under_one_root():
    for name in errors.__all__:
        assert getattr(dp, name) is getattr(errors, name)
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
