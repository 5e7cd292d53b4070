"""Byte sources for testing samplers. Not reachable from the package."""

import numpy as np


class InsecureSource:
    """Repeatable bytes."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def draw(self, count: int) -> np.ndarray:
        return np.frombuffer(self._generator.bytes(count), dtype=np.uint8).copy()


class ScriptedSource:
    """Says first what the script says, then repeatable bytes."""

    def __init__(self, script: bytes, seed: int = 0) -> None:
        self._script = script
        self._after = InsecureSource(seed)

    def draw(self, count: int) -> np.ndarray:
        said, self._script = self._script[:count], self._script[count:]
        rest = self._after.draw(count - len(said)).tobytes()
        return np.frombuffer(said + rest, dtype=np.uint8).copy()
