"""Questions in two parts under replay: what decides is the released value, or it is found."""

import deniable as dp
from deniable.ledger.reservation import Second

HERE, THERE = [1, 2, 3], [1, 2, 3, 4]
COUNT = dp.Geometric(epsilon=1, sensitivity=1)


def session(data, ledger):
    ledger.open("people", dp.Budget(dp.PureDP(3)), who="owner")
    return data, dp.Gate(ledger, "people", "analyst")


def asked(made, then, rest=COUNT.loss):
    data, gate = made
    first, door = gate.answer_in_two(
        COUNT.loss, rest, {"q": 1}, lambda door: door.draw(COUNT, lambda: len(data)), then,
        purpose="n",
    )  # fmt: skip
    if door is None:
        return [first.value]
    with door:
        return [first.value, door.close(door.draw(COUNT, lambda: len(data))).value]


def second(loss=COUNT.loss, **more):
    return Second(loss, {"q": 2, **more}, "main")


def replayed(pipeline):
    return dp.replay(pipeline, HERE, THERE, factory=session, time_limit=None)


def test_a_released_value_may_decide():
    for then in (lambda v: second() if v % 2 else None, lambda _: second(), lambda _: None):
        found = replayed(lambda made, then=then: asked(made, then))
        assert found.ok, str(found)


def test_private_data_may_not():
    def whether(made):
        return asked(made, lambda _: second() if len(made[0]) > 3 else None)

    def price(made):
        half = dp.Geometric(epsilon=0.5, sensitivity=1).loss
        return asked(made, lambda _: second(half if len(made[0]) > 3 else COUNT.loss))

    def question(made):
        return asked(made, lambda _: second(n=len(made[0])))

    def hold(made):
        rest = dp.losses.PureLoss(bound=1 if len(made[0]) > 3 else 1.5)
        return asked(made, lambda _: None, rest)

    for leak in (whether, price, question, hold):
        assert not replayed(leak).ok, leak.__name__
