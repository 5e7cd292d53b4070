"""The command as a whole: every command is listed, and loaded only when it is asked for."""

import subprocess
import sys

COMMANDS = [
    "init", "query", "explain", "attack", "learn", "synth", "demo", "ledger", "audit", "survey",
]  # fmt: skip


def loaded(*arguments):
    """The library's modules after a command ran."""
    code = (
        "import sys; from deniable.cli.app import app; app(sys.argv[1:], standalone_mode=False); "
        "print(*[m for m in sys.modules if m.startswith('deniable.')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.splitlines()[-1].split())


def test_all_commands_are_listed_with_what_they_do(run):
    told = run("--help")
    assert [name for name in COMMANDS if f" {name} " not in told] == []


def test_a_command_does_not_wait_for_the_others():
    found = loaded("ledger", "--help")
    assert "deniable.cli.ledger" in found
    other = ("deniable.auditing", "deniable.service", "deniable.synthesis", "deniable.learning")
    assert [name for name in found if name.startswith(other)] == []


def test_a_command_that_does_not_exist_is_refused():
    code = "from deniable.cli.app import app; app(['nonsense'])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "No such command 'nonsense'" in ran.stderr
