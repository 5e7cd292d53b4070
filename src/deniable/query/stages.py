"""The way of a question: the function of each room, in order. A test holds it to be true."""

from __future__ import annotations

from collections.abc import Callable

from deniable.query.plan.planner import Planner
from deniable.query.price.price import price
from deniable.query.read.compile import compile_resolved
from deniable.query.read.resolve import parse, resolved
from deniable.query.run.answering import Answering
from deniable.query.run.drawing import draw
from deniable.query.show.shown import shown

STAGES: tuple[Callable[..., object], ...] = (
    parse,  # text to a tree; what is no SELECT is refused
    Answering.answer,  # recorded, or drawn now
    Planner.asked,  # what is wrong with it is found before anything is spent
    resolved,  # every column with its table
    compile_resolved,  # clauses to canonical values, a relation, a plan
    price,  # what each draw costs, and its noise; then the gate charges it
    draw,  # exact whole numbers from the engine, released through the door
    shown,  # what the ledger holds, as an answer with intervals
)
