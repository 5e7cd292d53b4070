import math

import pytest

import deniable as dp
from deniable.privacy.pictures import growth

LAPLACE = dp.losses.LaplaceLoss(scale=10, sensitivity=1)
GAUSSIAN = dp.losses.GaussianLoss(sigma=10, sensitivity=1)


def test_pictures_are_drawn(tmp_path):
    losses = {"100 Laplace": dp.repeat(LAPLACE, 100), "Gaussian": GAUSSIAN}
    for draw in (
        lambda path: dp.losses.plot_profile(losses, path),
        lambda path: dp.losses.plot_profile({"Laplace": LAPLACE}, path, epsilon=0.2),
        lambda path: dp.losses.plot_tradeoff(losses, path),
        lambda path: dp.losses.plot_growth(LAPLACE, path, delta=1e-6, counts=(1, 10, 100)),
    ):
        path = tmp_path / "picture.png"
        assert draw(path) == path
        assert path.read_bytes().startswith(b"\x89PNG")
        path.unlink()


def test_growth_orders_the_ways_of_accounting():
    found = growth(LAPLACE, delta=1e-6, counts=(10, 100, 1000))
    assert list(found) == ["basic", "advanced", "zCDP", "numerical"]
    for number in range(3):
        assert found["numerical"][number] <= found["zCDP"][number] * (1 + 1e-9)
        assert found["numerical"][number] <= found["basic"][number] * (1 + 1e-9)
    assert found["zCDP"][2] < found["advanced"][2] < found["basic"][2]


def test_growth_of_noise_that_is_never_pure():
    found = growth(GAUSSIAN, delta=1e-6, counts=(1, 100))
    assert list(found) == ["basic", "zCDP", "numerical"]
    assert all(math.isfinite(value) for values in found.values() for value in values)


def test_bad_input(tmp_path):
    with pytest.raises(dp.ParameterError, match="losses"):
        dp.losses.plot_profile({}, tmp_path / "x.png")
    with pytest.raises(dp.ParameterError, match="losses"):
        dp.losses.plot_tradeoff(LAPLACE, tmp_path / "x.png")
    with pytest.raises(dp.ParameterError, match="counts"):
        dp.losses.plot_growth(LAPLACE, tmp_path / "x.png", delta=1e-6, counts=())
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.losses.plot_growth(1.0, tmp_path / "x.png", delta=1e-6)
