"""Whether a survey takes answers."""

from __future__ import annotations

import sqlalchemy as sa

from deniable.errors import AdmissionError
from deniable.service.document import SurveyDocument
from deniable.service.tables import CLOSED, SURVEYS


def check_open(connection: sa.Connection, document: SurveyDocument) -> None:
    """AdmissionError where the survey is closed, or was never added."""
    added = sa.select(SURVEYS.c.survey).where(SURVEYS.c.survey == document.id)
    if connection.execute(added).scalar() is None:
        raise AdmissionError("there is no such survey here; check the link")
    if is_closed(connection, document):
        raise AdmissionError("this survey is closed; no more answers are taken")


def is_closed(connection: sa.Connection, document: SurveyDocument) -> bool:
    """Whether it takes no more answers."""
    query = sa.select(CLOSED.c.survey).where(CLOSED.c.survey == document.id)
    return connection.execute(query).scalar() is not None
