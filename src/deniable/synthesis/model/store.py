"""Models in files: arrays and a header, nothing that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.errors import ParameterTypeError
from deniable.synthesis.domain import Codes, Domain, Floats
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.dense import DenseModel
from deniable.synthesis.model.graphical import GraphicalModel
from deniable.synthesis.model.junction import JunctionTree
from deniable.synthesis.rare import Merged, Unmerged

Arrays = dict[str, Floats | Codes]


def stored(model: Model) -> tuple[dict[str, Any], Arrays]:
    """A header, and the arrays that it speaks of."""
    sizes = dict(zip(model.domain.columns, model.domain.sizes, strict=True))
    if isinstance(model, Unmerged):
        header, arrays = stored(model.inner)
        for column, codes in model.merges.codes.items():
            arrays[f"codes {column}"] = codes
            arrays[f"split {column}"] = model.merges.splits[column]
        merged = {"columns": list(model.merges.codes), "domain": sizes}
        return {**header, "merged": merged}, arrays
    if isinstance(model, DenseModel):
        return {"kind": "dense", "domain": sizes, "total": model.total}, {"logs": model.logs}
    if not isinstance(model, GraphicalModel):
        raise ParameterTypeError("model", type(model).__name__, "cannot be kept in a file")
    tree = model.tree
    header = {
        "kind": "graphical",
        "domain": sizes,
        "total": model.total,
        "cliques": [list(clique) for clique in tree.cliques],
        "parents": list(tree.parents),
        "separators": [list(clique) for clique in tree.separators],
    }
    arrays = {f"table {n}": table for n, table in enumerate(model.tables)}
    arrays |= {f"given {n}": table for n, table in enumerate(model.conditionals)}
    return header, dict(arrays)


def restored(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Model:
    """The model again."""
    domain, total = Domain(header["domain"]), float(header["total"])
    model: Model
    if header["kind"] == "dense":
        model = DenseModel(domain, total, arrays["logs"])
    else:
        cliques = tuple(tuple(clique) for clique in header["cliques"])
        separators = tuple(tuple(clique) for clique in header["separators"])
        tree = JunctionTree(domain, cliques, tuple(header["parents"]), separators)
        places = range(len(cliques))
        model = GraphicalModel(
            tree,
            total,
            tuple(arrays[f"table {n}"] for n in places),
            tuple(arrays[f"given {n}"] for n in places),
        )
    if "merged" not in header:
        return model
    columns = header["merged"]["columns"]
    merges = Merged(
        {column: arrays[f"codes {column}"] for column in columns},
        {column: arrays[f"split {column}"] for column in columns},
    )
    return Unmerged(model, merges, Domain(header["merged"]["domain"]))
