"""`deniable demo`: a private count and a private histogram of a made-up clinic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table

from deniable import plots
from deniable.errors import DeniableError
from deniable.mechanisms.laplace import Geometric
from deniable.privacy.composition import compose
from deniable.privacy.exact import positive
from deniable.privacy.losses.base import Loss
from deniable.randomness.noise import GaussianLaw, noise

PATIENTS = 5_000
_EDGES = np.arange(0, 111, 10)
_BANDS = [f"{low}-{low + 9}" for low in _EDGES[:-1]]


@dataclass(frozen=True)
class DemoAnswer:
    """Noisy numbers with 95 % half-widths, and what they cost."""

    seniors: int
    seniors_error: int
    bands: list[int]
    bands_error: int
    loss: Loss


def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy loss of the two answers together.")] = 1.0,
    picture: Annotated[Path | None, typer.Option(help="Also draw the histogram here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count and draw the ages of a made-up clinic's patients, privately, with error bars."""
    try:
        answer = ask(clinic_ages(), epsilon)
        if picture is not None:
            errors = [float(answer.bands_error)] * len(_BANDS)
            title = f"Patients by age, ε = {epsilon / 2:g}, 95 % error bars"
            plots.bars_with_errors(
                _BANDS, [float(n) for n in answer.bands], errors, title=title, path=picture
            )
    except (DeniableError, OSError) as error:
        typer.echo(f"deniable demo: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(_as_dict(answer)))
    else:
        _print(answer)
        if picture is not None:
            typer.echo(f"picture: {picture}")


def clinic_ages() -> npt.NDArray[np.int64]:
    """Made-up ages, new on each run: two generations around 34 and 71."""
    spread = noise(GaussianLaw(Fraction(12**2)))
    young, old = spread.many(PATIENTS * 3 // 5) + 34, spread.many(PATIENTS * 2 // 5) + 71
    return np.concatenate([young, old]).clip(0, 109)


def ask(ages: npt.NDArray[np.int64], epsilon: float) -> DemoAnswer:
    """Release a count and a histogram, each at half of ε: one patient changes one cell by one."""
    mechanism = Geometric(epsilon=positive(epsilon, "epsilon") / 2, sensitivity=1)
    cells, _ = np.histogram(ages, bins=_EDGES)
    seniors, bands = mechanism.release(int((ages >= 65).sum())), mechanism.release(cells)
    assert isinstance(seniors, int)
    assert isinstance(bands, np.ndarray)
    error = mechanism.error(confidence=0.95)
    loss = compose(mechanism.loss, mechanism.loss)
    return DemoAnswer(seniors, error, bands.tolist(), error, loss)


def _as_dict(answer: DemoAnswer) -> dict[str, object]:
    return {
        "seniors": {"estimate": answer.seniors, "error": answer.seniors_error},
        "bands": [
            {"age": band, "estimate": estimate, "error": answer.bands_error}
            for band, estimate in zip(_BANDS, answer.bands, strict=True)
        ],
        "epsilon": answer.loss.epsilon(delta=0),
    }


def _print(answer: DemoAnswer) -> None:
    console = Console()
    console.print(f"A made-up clinic with some {PATIENTS:,} patients. Nobody's age shows below.\n")
    console.print(f"Patients of 65 and more: {answer.seniors} ± {answer.seniors_error}\n")
    table = Table("age", "patients", "± (95 %)", "", title="Patients by age", title_justify="left")
    longest = max(*answer.bands, 1)
    for band, estimate in zip(_BANDS, answer.bands, strict=True):
        bar = "█" * max(0, round(40 * estimate / longest))
        table.add_row(band, str(estimate), str(answer.bands_error), bar)
    console.print(table)
    console.print(f"\nBoth answers together are {answer.loss.epsilon(delta=0):g}-DP.")
