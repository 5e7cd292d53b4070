"""What is sent to the engine, and how a question ends, is the same with one more person.

Every question of the corpus is replayed on a neighbour with the releases of the first run: kind and
sentence of a refusal, price, columns, number and text of all statements must be equal.
"""

import contextlib
from datetime import date

import pyarrow as pa
import pytest

import deniable as dp
from corpus import hospital
from corpus.test_forbidden import QUESTIONS as FORBIDDEN, opened, text_of
from deniable.query.plan.plan import SCALE
from fuzz.hostile import array

QUESTIONS = hospital.read_questions("queries.sql")
BATCH = 12
NEW = 1_000_000
_BIG = 1.7976931348623157e308
VISITS = {  # of one hostile person, row by row
    "patient_id": [NEW] * 8,
    "ward": ["surgery", "nobody's", "", None, "İ", "é" * 40_000, b"\xff\xfe", "cardiology"],
    "cost": [-0.0, float("nan"), float("inf"), _BIG, -_BIG, 5e-324, None, 1e9],
    "age": [2**63 - 1, -(2**63), 0, None, 1, 2**62, 120, -1],
    "visited": [date.min, date.max, 2**31 - 2, 2 - 2**31, None, 0, -719_163, 2_932_897],
    "diagnosis": ["asthma", b"a\xc3", "Zoë", "now", "1e400", None, "", "x" * 70_000],
    "urgent": [True, False, None, True, True, None, True, False],
}
PRESCRIPTIONS = {
    "patient_id": [NEW] * 3,
    "drug": ["aspirin", "e\u0301", b"\xed\xa0\x80"],
    "price": [float("nan"), -0.0, _BIG],
    "day": [2 - 2**31, None, date.max],
}


class Listened:
    """An engine, or a snapshot of one, that notes every statement."""

    def __init__(self, engine, log, write):
        self._engine, self._log, self._write = engine, log, write

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def check(self, steps):
        self._log.append(("checked", [self._write(step) for step in steps]))
        self._engine.check(steps)

    def run(self, step):
        self._log.append(("run", self._write(step)))
        return self._engine.run(step)

    @contextlib.contextmanager
    def snapshot(self, reads, *, only):
        self._log.append(("snapshot", [self._write(step) for step in reads], sorted(only)))
        with self._engine.snapshot(reads, only=only) as taken:
            yield Listened(taken, self._log, self._write)


def listen(session):
    """Whatever the session's engine is told from now on."""
    log = []
    session._engine = Listened(session._engine, log, session._engine.write)
    return log


def seen(session, verb, sql, options):
    """All that an analyst, or who watches the engine, sees of a question."""
    log = listen(session)
    try:
        found = getattr(session, verb)(sql, epsilon=0.01, **options)
    except dp.DeniableError as error:
        return type(error).__name__, str(error), log
    finally:
        session._engine = session._engine._engine
    if verb == "explain":
        return "explained", str(found), found.cost, found.statements, log
    return "answered", found.columns, str(found.cost), found.data, log


def with_her(table, rows):
    """A table with the hostile person's rows in front."""
    columns = {field.name: array(rows[field.name], field.type) for field in table.schema}
    return pa.concat_tables([pa.table(columns), table]).combine_chunks()


SEEN = with_her(hospital.visits(), VISITS)
GIVEN = with_her(hospital.prescriptions(), PRESCRIPTIONS)
NEIGHBOURS = {
    "without": {"seen": hospital.visits(), "given": hospital.prescriptions()},
    "with": {"seen": SEEN, "given": GIVEN},
}


def replayed(questions, most):
    """The questions of a session, on neighbours, with the same releases."""

    def factory(who, ledger):
        return hospital.session(ledger=ledger, max_rows=most, max_groups=3, **NEIGHBOURS[who])

    def pipeline(session):
        with session:
            return [seen(session, "sql", each.sql, each.options) for each in questions]

    found = dp.replay(pipeline, "without", "with", factory=factory, time_limit=None)
    assert found.releases
    return found


@pytest.mark.parametrize("first", range(0, len(QUESTIONS), BATCH))
def test_every_question_of_the_corpus_runs_the_same_statements(first):
    found = replayed(QUESTIONS[first : first + BATCH], (24, 12))
    assert found.ok, str(found)


@pytest.mark.parametrize("first", range(0, len(QUESTIONS), 6 * BATCH))
def test_bounds_are_bought_by_the_same_statements(first):
    found = replayed(QUESTIONS[first : first + 6 * BATCH : 6], (None, None))
    assert found.ok, str(found)


@pytest.fixture(scope="module")
def neighbours():
    with contextlib.ExitStack() as stack:
        made = {
            budget: [stack.enter_context(opened(guarantee, **each)) for each in NEIGHBOURS.values()]
            for budget, guarantee in (
                ("approximate", dp.ApproxDP(3, 1e-6)),
                ("pure", dp.PureDP(3)),
            )
        }
        yield made


@pytest.mark.parametrize("verb", ["sql", "explain"])
@pytest.mark.parametrize("question", [pytest.param(each, id=each.name) for each in FORBIDDEN])
def test_every_refusal_is_the_same(question, verb, neighbours):
    sessions = neighbours[question.notes.get("budget", "approximate")]
    one, two = (seen(each, verb, text_of(question), question.options) for each in sessions)
    assert one == two
    assert one[0] in {"QueryError", "ParameterError", "ParameterTypeError"}
    assert "run" not in [each[0] for each in one[-1]]


@pytest.mark.parametrize("question", [pytest.param(each, id=each.name) for each in QUESTIONS])
def test_every_question_is_explained_in_the_same_words(question, neighbours):
    sessions = neighbours["approximate"]
    one, two = (seen(each, "explain", question.sql, question.options) for each in sessions)
    assert one == two


def test_a_statement_more_is_found(monkeypatch):
    """Power: a reader that looks again where it has counted more than 5,000."""
    from deniable.query.run import drawing

    right = drawing._Reader._run

    def curious(reader, name):
        rows = right(reader, name)
        if rows[0][0] > hospital.VISITS * SCALE:
            reader._snapshot.run(reader._steps[name])
        return rows

    monkeypatch.setattr(drawing._Reader, "_run", curious)
    question = hospital.Question("all", "SELECT COUNT(*) AS n FROM visits")
    assert not replayed([question], (24, 12)).ok
