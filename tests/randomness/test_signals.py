"""Signal handlers that draw in the midst of a draw: nothing waits for itself, nothing repeats."""

import signal
from fractions import Fraction

import pytest

import deniable as dp
from deniable.ledger.ledger import Ledger
from deniable.randomness import noise as noise_module
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.randomness.source import SECURE, _Keystream


@pytest.fixture
def on_signal():
    """Run something as the handler of a signal; what raises it has to be called in its midst."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda act: signal.signal(signal.SIGUSR1, lambda *_: act())
    signal.signal(signal.SIGUSR1, before)


def raises_once(monkeypatch, home, name):
    """Raise the signal at the first call, from within."""
    inner, calls = getattr(home, name), []

    def call(*arguments, **named):
        calls.append(name)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGUSR1)
        return inner(*arguments, **named)

    monkeypatch.setattr(home, name, call)
    return calls


def test_bytes_are_drawn_in_the_midst_of_a_draw_of_bytes(on_signal, monkeypatch):
    told = []
    on_signal(lambda: told.append(SECURE.draw(32).tobytes()))
    calls = raises_once(monkeypatch, _Keystream, "fill")
    blocks = [SECURE.draw(32).tobytes() for _ in range(20)] + told
    assert len(told) == 1
    assert len(calls) > 1
    assert len(set(blocks)) == 21
    assert not SECURE._stream.filling


def test_noise_is_drawn_in_the_midst_of_a_draw_of_noise(on_signal, monkeypatch):
    shared, told = noise(LaplaceLaw(Fraction(10**12))), []
    shared.wipe()
    on_signal(lambda: told.append(shared.one()))
    raises_once(monkeypatch, noise_module.Noise, "_next")
    drawn = [shared.one() for _ in range(50)] + told
    assert len(told) == 1
    assert len(set(drawn)) == 51  # of some 10^12 values
    assert not shared._pool.drawing


def test_a_handler_that_raises_leaves_noise_to_be_drawn(on_signal, monkeypatch):
    shared = noise(LaplaceLaw(Fraction(10**12)))

    def fail():
        raise KeyboardInterrupt

    on_signal(fail)
    raises_once(monkeypatch, noise_module.Noise, "_next")
    with pytest.raises(KeyboardInterrupt):
        shared.one()
    assert shared.one() != shared.one()


def test_a_stream_refuses_a_handler_in_the_midst_of_its_answer(on_signal, monkeypatch):
    stream = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, positives=1).open()
    told = []

    def ask():
        with pytest.raises(dp.errors.StreamExhaustedError, match="signal handler"):
            stream.ask(10.0**6)
        told.append(stream.positives_left)

    on_signal(ask)
    raises_once(monkeypatch, noise_module.Noise, "_next")
    assert stream.ask(10.0**6).above
    assert told == [1]
    assert stream.positives_left == 0


def test_a_door_refuses_a_handler_in_the_midst_of_a_charge(on_signal, monkeypatch):
    mechanism, told = dp.Laplace(epsilon=1, sensitivity=1), []
    with Ledger(key=bytes(32)) as ledger:
        ledger.open("clinic/patient", dp.Budget(dp.PureDP(5)), who="owner")
        with dp.Gate(ledger, "clinic/patient", "ana").open(mechanism.loss, purpose="test") as door:

            def draw():
                with pytest.raises(dp.errors.DoorError, match="signal handler"):
                    door.draw(mechanism, lambda: 0.0)
                told.append(True)

            on_signal(draw)
            raises_once(monkeypatch, type(door), "_check")
            door.close(door.draw(mechanism, lambda: 0.0))
        assert told
