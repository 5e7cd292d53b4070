"""`deniable learn`: a private model of a table, with its price."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from deniable.cli.failures import told
from deniable.cli.metadata import read_metadata
from deniable.cli.query import left_line, plain_console, waiting
from deniable.cli.question import AsJson, Epsilon, File, Rho


class ModelKind(StrEnum):
    """What can be learned."""

    LINEAR = "linear"
    LOGISTIC = "logistic"
    BAYES = "bayes"
    KMEANS = "kmeans"
    PCA = "pca"


@told("learn")
def learn(  # noqa: PLR0917
    file: File,
    kind: Annotated[ModelKind, typer.Argument(help="Which model.")],
    table: Annotated[str, typer.Argument(help="Which table, or a SELECT of rows.")],
    x: Annotated[
        str | None, typer.Option("--x", help="Columns to learn from: age,cost; else all.")
    ] = None,
    y: Annotated[str | None, typer.Option("--y", help="The column to predict.")] = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    count: Annotated[int, typer.Option(help="Clusters of k-means, or components of PCA.")] = 2,
    as_json: AsJson = False,
    who: Annotated[str, typer.Option(help="Who asks; it is recorded.")] = "analyst",
) -> None:
    """Fit a private model and charge its price. The same fit again is free.

    Bounds and classes are those that the metadata file declares.

    Example: deniable learn visits.toml linear visits --x age --y cost --rho 0.01

    Or: deniable learn visits.toml linear "SELECT age, cost FROM visits WHERE age > 17" --y cost
    """
    from deniable.learning.fit import fit  # noqa: PLC0415  (scikit-learn is slow to load)

    metadata = read_metadata(file)
    with metadata.session(who=who) as session:
        model = _model(kind, {"epsilon": epsilon, "rho": rho}, count)
        before = session.remaining
        with waiting("learning"):
            columns = None if x is None else [name.strip() for name in x.split(",")]
            fitted = fit(session, model, table, x=columns, y=y)
        learned = {
            name: np.asarray(value).tolist()
            for name, value in sorted(vars(fitted).items())
            if name.endswith("_") and name != "n_features_in_"
        }
        if as_json:
            cost = fitted.cost()
            typer.echo(json.dumps({"model": str(kind), "cost": str(cost), **learned}, indent=2))
            return
        shown = Table("learned", "value")
        for name, value in learned.items():
            shown.add_row(name, np.array2string(np.array(value), precision=4, threshold=40))
        plain_console().print(shown)
        for name, each in session.remaining.items():
            free = "given before, free; " if each.remaining == before[name].remaining else ""
            typer.echo(f"{name}: {free}{left_line(each, fitted.cost())}")


def _model(kind: ModelKind, price: dict[str, Any], count: int) -> Any:
    """The estimator; what it must be told comes from the table."""
    from deniable import learning  # noqa: PLC0415  (scikit-learn is slow to load)

    match kind:
        case ModelKind.LINEAR:
            return learning.LinearRegression(**price, bounds=None, y_bounds=None)
        case ModelKind.LOGISTIC:
            return learning.LogisticRegression(**price, bounds=None, classes=None)
        case ModelKind.BAYES:
            return learning.GaussianNB(**price, bounds=None, classes=None)
        case ModelKind.KMEANS:
            return learning.KMeans(count, **price, bounds=None)
        case ModelKind.PCA:
            return learning.PCA(count, **price, bounds=None)
