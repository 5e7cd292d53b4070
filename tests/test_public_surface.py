import subprocess
import sys
from pathlib import Path

import deniable as dp
from deniable import errors


def test_all_is_exactly_what_is_public():
    import types

    visible = {
        name
        for name, value in vars(dp).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert visible == set(dp.__all__)
    assert len(dp.__all__) == len(set(dp.__all__))


def test_every_public_name_is_documented():
    for name in dp.__all__:
        assert getattr(dp, name).__doc__, name


def test_every_error_is_public_and_under_one_root():
    for name in errors.__all__:
        assert getattr(dp, name) is getattr(errors, name)
        assert issubclass(getattr(errors, name), errors.DeniableError)


def test_importing_is_light():
    code = (
        "import time; start = time.process_time(); import deniable, sys\n"
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
