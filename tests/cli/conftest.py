import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from clinic import METADATA, visits
from deniable.cli.app import app


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to stand in, and a key of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", bytes(range(32)).hex())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def data(folder):
    pq.write_table(visits(), folder / "visits.parquet")
    return folder / "visits.parquet"


@pytest.fixture
def file(data):
    path = data.with_suffix(".toml")
    path.write_text(METADATA)
    return path


@pytest.fixture
def run():
    def run(*arguments, code=0, stdin=None):
        found = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
        assert found.exit_code == code, (found.stdout, found.stderr, found.exception)
        if code == 2:
            assert found.stdout == ""
            assert found.stderr.count("\n") == 1
            assert "Traceback" not in found.stderr
            return found.stderr
        return found.stdout

    return run
