"""A synthetic table: a model of a private one, in the private one's own values."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.errors import MissingExtraError, ParameterError
from deniable.privacy.exact import whole
from deniable.privacy.price import Price
from deniable.synthesis.columns import Coding
from deniable.synthesis.domain import Clique, Floats, project
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.conditioned import Conditioned
from deniable.synthesis.model.store import restored, stored
from deniable.synthesis.queries import Counting
from deniable.tables import ColumnType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NORMAL_95 = 1.959963984540054
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expected counts, and the standard deviation of what they are off by.

    `deviation` is that of the best measurement that tells these counts directly, and how far the
    model is from that measurement, added in squares; None where no measurement does, and the
    model's structure alone speaks.
    """

    values: Floats
    deviation: float | None

    @property
    def half_width(self) -> float:
        """About 95 % of the noise; NaN where it is not known."""
        return math.nan if self.deviation is None else _NORMAL_95 * self.deviation


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """A model fitted to noisy marginals. All that is asked of it is free: data are not needed."""

    codings: tuple[Coding, ...]
    model: Model
    measurements: tuple[Measurement, ...]
    method: str
    receipt: tuple[tuple[str, Price], ...]

    @property
    def cost(self) -> Price:
        """What all of it cost: the sum of the receipt."""
        first, *rest = (price for _, price in self.receipt)
        return sum(rest, first)

    @property
    def rows(self) -> int:
        """The number of rows of the private table, estimated from the measurements."""
        return max(0, round(self.model.total))

    def sample(self, rows: int | None = None) -> pa.Table:
        """So many rows as an Arrow table; by default about as many as the private table has."""
        import pyarrow as pa  # noqa: PLC0415  (slow to import)

        count = self.rows if rows is None else whole(rows, "rows", least=0)
        codes = self.model.sample(count)
        kinds = {
            ColumnType.INTEGER: pa.int64(),
            ColumnType.NUMBER: pa.float64(),
            ColumnType.TEXT: pa.string(),
            ColumnType.BOOLEAN: pa.bool_(),
            ColumnType.DATE: pa.date32(),
            ColumnType.TIMESTAMP: pa.timestamp("us"),
        }
        return pa.table(
            {
                coding.name: pa.array(coding.decoded(codes[:, place]), kinds[coding.kind])
                for place, coding in enumerate(self.codings)
            }
        )

    def to_pandas(self, rows: int | None = None) -> pd.DataFrame:
        try:
            import pandas as pd  # noqa: F401, PLC0415  (optional, and slow to import)
        except ImportError:
            raise MissingExtraError("pandas tables", "pandas") from None
        return self.sample(rows).to_pandas()

    def marginal(self, columns: Sequence[str]) -> Estimate:
        """Expected counts by the codes of these columns, in the order of the table."""
        clique = self.model.domain.clique(columns)
        values = self.model.marginal(clique)
        return Estimate(values, self._deviation(clique, values, None))

    def answer(self, conditions: Mapping[str, Any]) -> Estimate:
        """About how many rows have these values: {"ward": "A", "sex": ["F", None]}."""
        if not isinstance(conditions, Mapping):
            raise ParameterError("conditions", conditions, "must map columns to values")
        codes = {name: self._coding(name).codes(given) for name, given in conditions.items()}
        query = Counting(self.model.domain, codes)
        values = self.model.marginal(query.clique)
        return Estimate(np.array(query.of(values)), self._deviation(query.clique, values, query))

    def condition(self, /, **values: Any) -> SyntheticTable:
        """Only the rows that have these values: `table.condition(sex="F").sample(100)`."""
        given = {name: self._coding(name).code(value) for name, value in values.items()}
        if not given:
            raise ParameterError("condition", "empty", "name a column and its value")
        return replace(self, model=Conditioned(self.model, given), measurements=())

    def save(self, path: str | Path) -> Path:
        """Write the model, the measurements and the declared domain to one file."""
        header, arrays = stored(self.model)
        about = {
            "format": _FORMAT,
            "method": self.method,
            "receipt": [[what, *_price_to_text(price)] for what, price in self.receipt],
            "codings": [asdict(coding) for coding in self.codings],
            "measurements": [each.to_json() for each in self.measurements],
            "model": header,
        }
        text = np.frombuffer(json.dumps(about, default=_plain).encode(), dtype=np.uint8)
        target = Path(path)
        with target.open("wb") as file:
            kept: dict[str, Any] = {"about": text} | {f"a {k}": v for k, v in arrays.items()}
            np.savez_compressed(file, **kept)
        return target

    @classmethod
    def load(cls, path: str | Path) -> SyntheticTable:
        """Read such a file. It holds numbers and text alone; nothing in it is run."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                about = json.loads(bytes(file["about"]).decode())
                arrays = {name[2:]: file[name] for name in file.files if name.startswith("a ")}
            if about["format"] != _FORMAT:
                raise ValueError
            codings = tuple(_coding(each) for each in about["codings"])
            model = restored(about["model"], arrays)
            receipt = tuple((what, _price(*numbers)) for what, *numbers in about["receipt"])
            measured = [Measurement.from_json(each) for each in about["measurements"]]
            return cls(codings, model, tuple(measured), about["method"], receipt)
        except (LookupError, TypeError, ValueError, OSError, RecursionError, zipfile.BadZipFile):
            raise ParameterError(
                "path", str(path), "is no synthetic table of this version"
            ) from None

    def report(self, private: Mapping[int, float] | None = None) -> str:
        """A page in HTML: how well the model fits what was measured, which costs nothing.

        `private` is what `dp.synthesis.evaluate` found, at its price, and is shown apart.
        """
        from deniable.synthesis.report import page  # noqa: PLC0415  (reports read tables)

        return page(self, private or {})

    def _coding(self, name: str) -> Coding:
        return self.codings[self.model.domain.place(name)]

    def _deviation(self, clique: Clique, values: Floats, query: Counting | None) -> float | None:
        """Of each cell, or of a query's answer, by the measurement that tells it with least noise.

        A model that stopped far from its measurement is off by about that distance. It is public,
        so error bars hold however well the fit went.
        """
        domain = self.model.domain
        told = [
            each
            for each in self.measurements
            if set(clique) <= set(each.clique) and domain.shape(each.clique) == each.values.shape
        ]
        if not told:
            return None
        best = min(told, key=lambda each: np.max(each.deviation) ** 2 * each.values.size)
        seen = project(best.values, best.clique, clique)
        cells = 1 if query is None else math.prod(len(each) for each in query.codes)
        noise = float(np.max(best.deviation)) * math.sqrt(cells * best.values.size / values.size)
        off = values - seen if query is None else np.array(query.of(values) - query.of(seen))
        return math.hypot(noise, math.sqrt(float(np.mean(np.square(off)))))


def _price_to_text(price: Price) -> list[str | None]:
    pure = None if price.epsilon is None else str(price.epsilon)
    return [pure, str(price.rho), str(price.delta)]


def _price(epsilon: str | None, rho: str, delta: str) -> Price:
    return Price(None if epsilon is None else Fraction(epsilon), Fraction(rho), Fraction(delta))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    raise TypeError


def _value(stored_value: Any) -> Any:
    if isinstance(stored_value, dict):
        if "time" in stored_value:
            return datetime.fromisoformat(stored_value["time"])
        return date.fromisoformat(stored_value["date"])
    return stored_value


def _coding(stored_coding: dict[str, Any]) -> Coding:
    return Coding(
        stored_coding["name"],
        ColumnType(stored_coding["kind"]),
        tuple(_value(each) for each in stored_coding["values"]),
        tuple(_value(each) for each in stored_coding["edges"]),
        bool(stored_coding["missing"]),
    )
