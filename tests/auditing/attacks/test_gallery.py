"""What all attacks have in common."""

import dataclasses
import json

import pytest

import deniable as dp

SMALL = {
    "difference": {"people": 20, "epsilons": (1.0,), "rounds": 9},
    "averaging": {"people": 20, "questions": (1, 10), "rounds": 9, "epsilon": 0.5},
    "reconstruction": {"bits": 16, "factors": (1, 4), "rounds": 1},
    "membership": {"members": 10, "outsiders": 100, "attributes": (20, 50), "rounds": 1},
    "k-anonymity": {"people": 200, "shared": 50, "ks": (3,), "values": (5, 10)},
    "linkage": {"people": 500, "users": 200, "items": 100, "rated": 20, "victims": 20},
    "last-bit": {"rounds": 5, "private_samples": 100},
    "seed": {"seeds": 256, "rounds": 3},
    "name-and-shame": {"people": 20, "releases": (1, 5)},
    "sparse-vector": {"positives": 5, "steps": 20, "games": 20, "private_games": 3},
}


def test_the_gallery_names_every_attack():
    assert list(dp.auditing.attacks.gallery())[:2] == ["difference", "averaging"]
    assert set(dp.auditing.attacks.gallery()) == set(SMALL)
    for name, made in dp.auditing.attacks.gallery().items():
        assert made.name == name
        assert isinstance(dp.auditing.attacks.attack(name), made)
        assert made.__doc__
        assert getattr(dp.auditing.attacks, made.__name__) is made


@pytest.mark.parametrize("name", SMALL)
def test_every_attack_tells_what_it_found(name, tmp_path):
    attack = dp.auditing.attacks.gallery()[name](**SMALL[name])
    found = attack.run()
    for frozen in (attack, found):
        field = dataclasses.fields(frozen)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, field, 1)
    assert found.sentence.endswith(".")
    assert "nan" not in found.sentence
    assert found.rows
    assert all(len(row) == len(found.columns) for row in found.rows)
    assert all(isinstance(cell, str) for row in found.rows for cell in row)
    picture = found.plot(tmp_path / "found.png")
    assert picture.stat().st_size > 5_000
    told = json.loads(json.dumps(dp.auditing.attacks.numbers(found), allow_nan=False))
    assert set(told) == {field.name for field in dataclasses.fields(found)}


def test_an_unknown_attack_is_named():
    with pytest.raises(dp.ParameterError, match="did you mean reconstruction"):
        dp.auditing.attacks.attack("reconstuction")


BAD = [
    ("difference", {"people": 1}),
    ("difference", {"people": 0}),
    ("difference", {"people": 2.5}),
    ("difference", {"people": 10**9}),
    ("difference", {"epsilons": (1.0, -1.0)}),
    ("difference", {"epsilons": ()}),
    ("difference", {"epsilons": 1.0}),
    ("difference", {"epsilons": "1"}),
    ("difference", {"epsilons": (float("nan"),)}),
    ("difference", {"bound": 0}),
    ("averaging", {"epsilon": -0.1}),
    ("averaging", {"epsilon": 0}),
    ("averaging", {"budget": 0.05}),
    ("averaging", {"budget": 1e6}),
    ("averaging", {"questions": (0,)}),
    ("averaging", {"questions": ()}),
    ("reconstruction", {"bits": 0}),
    ("reconstruction", {"bits": 2_000, "factors": (64,)}),
    ("reconstruction", {"delta": 0}),
    ("reconstruction", {"pure_epsilon": -1}),
    ("reconstruction", {"gaussian_epsilons": (-1,)}),
    ("membership", {"members": 0}),
    ("membership", {"delta": 1}),
    ("membership", {"attributes": (0,)}),
    ("membership", {"epsilons": (0,)}),
    ("k-anonymity", {"people": 0}),
    ("k-anonymity", {"people": 100, "shared": 101}),
    ("k-anonymity", {"ks": (1,)}),
    ("k-anonymity", {"values": (1,)}),
    ("k-anonymity", {"epsilon": -1}),
    ("linkage", {"rated": 0}),
    ("linkage", {"items": 100, "rated": 60}),
    ("linkage", {"known": (61,)}),
    ("linkage", {"victims": 10**6}),
    ("linkage", {"users": 100_000, "items": 10_000}),
    ("linkage", {"epsilon": 0}),
    ("last-bit", {"epsilon": float("inf")}),
    ("last-bit", {"confidence": 1}),
    ("last-bit", {"samples": 0}),
    ("seed", {"seeds": 0}),
    ("seed", {"seeds": 1 << 30}),
    ("seed", {"counts": 1}),
    ("name-and-shame", {"people": 1}),
    ("name-and-shame", {"delta": -1}),
    ("name-and-shame", {"people": 100_000, "releases": (100_000,)}),
    ("sparse-vector", {"epsilon": 21}),
    ("sparse-vector", {"positives": 0}),
    ("sparse-vector", {"steps": 10_000, "games": 10_000}),
]


@pytest.mark.parametrize(("name", "wrong"), BAD)
def test_wrong_parameters_are_refused_by_name(name, wrong):
    with pytest.raises(dp.ParameterError) as refused:
        dp.auditing.attacks.gallery()[name](**wrong)
    assert refused.value.argument in wrong


def test_guess_limits():
    from deniable.auditing.attacks.story import guess_limit

    limits = [round(guess_limit(epsilon), 3) for epsilon in (0.1, 1, 10)]
    assert limits == [0.525, 0.731, 1.0]
    assert guess_limit(0, 0.1) == pytest.approx(0.55)
    assert guess_limit(1e6) == 1
