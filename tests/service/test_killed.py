"""2,000 devices at once, and a server that is killed twice while they send."""

import asyncio
import json
from collections import Counter

from deniable.service.store import SurveyStore
from postgres import Postgres
from service.server import Server, body_of
from service.surveys import SCALE, survey

PEOPLE = 2_000
GIVE_UP = 200  # the last of them never ask again
KILL_AFTER = (400, 1_100)
DOCUMENT = survey(
    [{**SCALE, "id": f"q{i}", "text": {"en": f"{i}?"}, "low": 0, "high": 19} for i in range(3)]
)


def reports_of(number):
    """Reports that no two people share."""
    return number // 400, number // 20 % 20, number % 20


async def send(port, body):
    """Whether this submission was acknowledged; an error if the connection broke."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        text = json.dumps(body)
        writer.write(
            f"POST /s/{DOCUMENT.id}/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        await writer.drain()
        answer = await reader.read()
        head, _, said = answer.partition(b"\r\n\r\n")
        if not said:  # killed before the answer was out
            raise ConnectionError("no answer")
        assert head.startswith(b"HTTP/1.1 200"), answer
        return json.loads(said) == {"stored": True}
    finally:
        writer.close()


async def person(number, server, code, acknowledged, tries):
    body = body_of(DOCUMENT.id, code, reports_of(number), f"{number:032x}")
    while True:
        tries[number] += 1
        try:
            if await send(server.port, body):
                acknowledged.append(number)
                return
        except OSError:
            if number >= PEOPLE - GIVE_UP:
                return
            await asyncio.sleep(0.05)


async def killer(server, acknowledged):
    for count in KILL_AFTER:
        while len(acknowledged) < count:
            await asyncio.sleep(0.002)
        server.kill()
        await asyncio.to_thread(server.start)


async def storm(server, codes):
    acknowledged, tries = [], Counter()
    people = (person(n, server, code, acknowledged, tries) for n, code in enumerate(codes))
    await asyncio.gather(killer(server, acknowledged), *people)
    return acknowledged, tries


def test_a_survey_in_postgres_outlives_its_server(tmp_path):
    postgres = Postgres()
    server = None
    try:
        store = SurveyStore(postgres.url)
        store.add(DOCUMENT)
        codes = store.invite(DOCUMENT, [None] * 3)
        server = Server(tmp_path, DOCUMENT, store=postgres.url)
        bodies = [
            body_of(DOCUMENT.id, code, reports_of(number)) for number, code in enumerate(codes)
        ]
        for body in bodies[:2]:
            assert server.send(DOCUMENT.id, body) == (200, {"stored": True})
        server.kill()
        server.start()
        for body in bodies:
            assert server.send(DOCUMENT.id, body) == (200, {"stored": True})
        assert b'id="answered">3<' in server.operator(f"/{DOCUMENT.id}")[2]
        server.stop()
        assert sorted(store.reports(DOCUMENT)) == [reports_of(number) for number in range(3)]
        store.close()
    finally:
        if server is not None:
            server.stop()
        postgres.remove()


def test_every_acknowledged_report_is_stored_once(tmp_path):
    store = SurveyStore(tmp_path / "survey.db")
    store.add(DOCUMENT)
    codes = store.invite(DOCUMENT, [None] * PEOPLE)
    server = Server(tmp_path, DOCUMENT)
    try:
        acknowledged, tries = asyncio.run(storm(server, codes))
    finally:
        server.stop()
    stored = Counter(store.reports(DOCUMENT))
    store.close()
    assert max(stored.values()) == 1  # none twice
    assert len(acknowledged) == len(set(acknowledged)) >= PEOPLE - GIVE_UP
    assert all(stored[reports_of(number)] == 1 for number in acknowledged)  # none lost
    assert set(stored) <= {reports_of(number) for number in range(PEOPLE)}
    assert sum(tries.values()) > PEOPLE  # the kills were felt
