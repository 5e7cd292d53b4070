"""Sixteen processes that do the same to one store at the same moment."""

import multiprocessing
import os
import sys
import traceback
from pathlib import Path

from deniable.errors import DeniableError, SurveyStoreError
from deniable.service.store import SurveyStore

MANY = 16


class Crowd:
    """Processes that wait for each other before they act."""

    def __init__(self):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["service.crowd", "service.test_turns"])
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the server of forks reads it
        self._start = context.Barrier(MANY)  # it lives as long as they do
        self._pipes, self._processes = [], []
        for _ in range(MANY):
            mine, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, self._start))
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before

    def end(self):
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(60)
            assert process.exitcode == 0

    def all_at_once(self, where, keys, act, given):
        """Call `act(store, each)` in each process; results, or the names of errors."""
        for pipe, each in zip(self._pipes, given, strict=True):
            pipe.send((str(where), keys, act, each))
        return [pipe.recv() for pipe in self._pipes]


def _work(pipe, start):
    stores = {}
    while (told := pipe.recv()) is not None:
        where, keys, act, given = told
        try:
            if (where, keys) not in stores:
                _close(stores)
                stores[where, keys] = SurveyStore(where, keys=Path(keys))
            start.wait(60)
            pipe.send(act(stores[where, keys], given))
        except SurveyStoreError as failed:
            pipe.send(str(failed))
        except DeniableError as refused:
            pipe.send(type(refused).__name__)
        except Exception:
            start.abort()
            pipe.send(traceback.format_exc())
    _close(stores)


def _close(stores):
    while stores:
        stores.popitem()[1].close()
