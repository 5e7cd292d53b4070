"""`dp.synthesis.answer_online`: counting queries about a private table, in its own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from threading import Lock
from types import TracebackType
from typing import Any

from deniable.closed import read_names
from deniable.errors import ParameterTypeError
from deniable.held import Held
from deniable.ledger.amounts import read_amount
from deniable.privacy.exact import Number, whole
from deniable.privacy.guarantees import Guarantee
from deniable.privacy.price import Price
from deniable.release import Door
from deniable.session import Session
from deniable.shield import shielded
from deniable.synthesis.bought import with_rows
from deniable.synthesis.columns import Bins, Coding, codings, read_bins, read_declared
from deniable.synthesis.domain import Clique, Counts
from deniable.synthesis.evaluate import private_table
from deniable.synthesis.measure import Draws
from deniable.synthesis.model.dense import check_dense
from deniable.synthesis.pmw import OnlineAnswer, PrivateMultiplicativeWeights
from deniable.synthesis.queries import Counting
from deniable.synthesis.run import SynthesisRun


class OnlineDesk:
    """Answers about one table until it is closed; its whole price was reserved when it opened.

    All answers together, of however many queries, cost that price (`PrivateMultiplicativeWeights`).
    """

    def __init__(self, run: SynthesisRun, queries: int, updates: int) -> None:
        self._coded = {each.name: each for each in run.coded}
        self._turn = Lock()
        data = _Counted(run)
        door = run.gate.open(run.amount.loss, purpose="synthesis: online answers")
        assert isinstance(door, Door)  # no question is named, so none is found again
        self._door, self._draws = door, Draws(door, data, run.amount)
        self._weights = PrivateMultiplicativeWeights(self._draws, queries=queries, updates=updates)

    def __enter__(self) -> OnlineDesk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    @property
    def cost(self) -> Price:
        return self._door.cost

    @property
    def exhausted(self) -> bool:
        return self._weights.exhausted

    @property
    def updates_left(self) -> int:
        return self._weights.updates_left

    @shielded
    def answer(self, conditions: Mapping[str, Any]) -> OnlineAnswer:
        """About how many rows have these values: {"ward": "A", "age": [30, 40]}."""
        given: object = conditions
        if not isinstance(given, Mapping):
            raise ParameterTypeError("conditions", type(given).__name__, "maps columns to values")
        named = [(self._coding(name), values) for name, values in conditions.items()]
        codes = {coding.name: coding.codes(values) for coding, values in named}
        with self._turn:
            return self._weights.answer(Counting(self._draws.domain, codes))

    @shielded
    def close(self) -> None:
        self._draws.close({"updates left": self.updates_left})

    def _coding(self, name: str) -> Coding:
        return self._coded[self._draws.domain.columns[self._draws.domain.place(name)]]


class _Counted:
    """Counts of all records, read when the first is drawn; others may use the table after it.

    A marginal is a sum of them: of one unit they are 0 or more and sum to no more than they do.
    """

    def __init__(self, run: SynthesisRun) -> None:
        data = run.data(run.snapshot())
        self.domain, self.bound = run.domain, data.bound
        self.steps, self.relation = data.steps, data.relation
        self._run, self._whole = run, Held[Counts | None](None, "exact counts")

    def exact(self, clique: Clique) -> Counts:
        whole = self._whole.open()
        if whole is None:
            with self._run.snapshot() as snapshot:
                whole = self._run.data(snapshot).exact(self.domain.columns)
            self._whole = Held(whole, "exact counts")
        places = [self.domain.place(column) for column in clique]
        rest = tuple(place for place in range(len(self.domain)) if place not in places)
        kept = sorted(places)
        found: Counts = whole.sum(axis=rest)
        return found.transpose([kept.index(place) for place in places])


@shielded
def answer_online(
    session: Session,
    table: str,
    *,
    queries: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    guarantee: Guarantee | None = None,
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    missing: Sequence[str] = (),
    max_rows: int | None = None,
    updates: int = 50,
) -> OnlineDesk:
    """Open a desk that answers about `queries` counting queries on a private table.

    The domain is declared as for `dp.synthesize`, and all of its records must fit into memory.
    """
    parts, owner = session.parts, private_table(session, table)
    expected, most = whole(queries, "queries"), whole(updates, "updates")
    amount = read_amount(parts.budget, epsilon=epsilon, rho=rho, guarantee=guarantee).on_grid()
    coded = codings(
        owner,
        parts.catalogue.schemas[table.lower()],
        columns=None if columns is None else read_names(columns, "columns"),
        bins=read_bins(bins),
        keys=read_declared(keys),
        bounds={},
        missing=read_names(missing, "missing"),
    )
    limit = None if max_rows is None else whole(max_rows, "max_rows")
    run = SynthesisRun.of(parts, table.lower(), coded, amount, limit)
    check_dense(run.domain)
    run.counting(limit or owner.max_rows or 1).check(Fraction(1, 4 * most))
    run, _ = with_rows(run)
    return OnlineDesk(run, expected, most)
