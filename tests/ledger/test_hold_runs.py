"""Reservations with holds beside each other: threads, and random runs beside a model."""

import random
import threading

import pytest

import deniable as dp
from clinic import CLINIC, reserve
from deniable.ledger.entries import state_of
from deniable.ledger.filters import Budget, Totals, charge
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Second
from deniable.ledger.verify import verify

HALF = dp.losses.PureLoss(bound=0.5)


def test_two_threads_and_a_budget_for_one(tmp_path):
    """Both would fit by a look before; one passes, and when it lets go the other does."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        for _ in range(10):
            start, passed = threading.Barrier(2), []

            def ask(start=start, passed=passed):
                start.wait()
                try:
                    passed.append(
                        reserve(ledger, CLINIC, dp.losses.PureLoss(bound=0.01), hold=HALF)
                    )
                except dp.BudgetError:
                    passed.append(None)

            threads = [threading.Thread(target=ask) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            (won,) = [each for each in passed if each is not None]
            assert passed.count(None) == 1
            ledger.settle(won, 1, None)
        verify(ledger, CLINIC)
        assert ledger.balance(CLINIC).totals[0].epsilon == 10**17


@pytest.mark.parametrize("seed", range(6))
def test_random_sequences(seed):
    Run(seed).go(40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_sequences(seed):
    Run(seed).go(200)


PRICES = [dp.losses.PureLoss(bound=b) for b in (0.01, 0.05, 0.2)]
PRICES += [dp.DiscreteGaussian(rho=r, sensitivity=1).loss for r in (0.0001, 0.002)]
PRICES += [dp.losses.ApproxLoss(bound=0.02, slack=5e-8)]


class Run:
    """A ledger beside a model that keeps every charge and every hold in a list and adds them up."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.budget = Budget(dp.ApproxDP(1, 1e-6)) if seed % 2 else Budget(dp.PureDP(1))
        self.prices = PRICES if seed % 2 else PRICES[:3]
        self.ledger = Ledger(key=bytes(32))
        self.ledger.open(CLINIC, self.budget, who="owner")
        self.charges, self.holds, self.doors = [], {}, []

    def total(self, *more):
        losses = [*self.charges, *(rest for _, rest in self.holds.values()), *more]
        return sum(map(charge, losses), Totals())

    def go(self, steps):
        for number in range(1, steps + 1):
            step = self.rng.random()
            if step < 0.5 or not (self.holds or self.doors):
                self.ask(number)
            elif self.holds and step < 0.9:
                self.settle(number)
            elif self.doors:
                self.ledger.answer(self.doors.pop(), 1)
            balance = self.ledger.balance(CLINIC)
            assert balance.totals[0] == self.total()
            assert balance.holds == len(self.holds)
        last = list(self.ledger.history(CLINIC))[-1]
        charged = sum(map(charge, self.charges), Totals())
        assert state_of(last).tranches[0].totals == charged
        verify(self.ledger, CLINIC)

    def ask(self, number):
        first, rest = self.rng.choice(self.prices), self.rng.choice([None, *self.prices])
        admitted = self.budget.admits(self.total(*(each for each in (first, rest) if each)))
        try:
            made = reserve(self.ledger, CLINIC, first, question={"n": number}, hold=rest)
        except dp.BudgetError:
            assert not admitted
            return
        assert admitted
        self.charges.append(first)
        if rest is None:
            self.doors.append(made)
        else:
            self.holds[made.number] = made, rest

    def settle(self, number):
        made, rest = self.holds[self.rng.choice(list(self.holds))]
        end = self.rng.choice(["go", "go", "second", "second", "fail", "answer"])
        if end == "second":
            loss = self.rng.choice(self.prices)
            fits = charge(rest).covers(charge(loss))
            try:
                _, door = self.ledger.settle(made, 1, Second(loss, {"n": -number}, "x"))
            except dp.errors.DoorError:
                assert not fits
                return
            assert fits
            self.charges.append(loss)
            self.doors.append(door)
        elif end == "go":
            self.ledger.settle(made, 1, None)
        else:
            self.charges.append(rest)
            self.ledger.fail(made) if end == "fail" else self.ledger.answer(made, 1)
        del self.holds[made.number]
