"""The process pool of audits, sweeps and experiments: processes here, or workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.extras import need
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread

__all__ = ["results_of"]

IDLE_SECONDS: Final = 30
"""Seconds that an idle process stays alive; the next pool reuses it."""

REACHED_WITHIN: Final = 10.0
"""Seconds within which a scheduler must answer and have a worker."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def results_of(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, jobs: int, scheduler: str | None = None
) -> Iterator[tuple[int, _Result]]:
    """Apply a function to each item, with one BLAS thread: results do not depend on the process count.

    Args:
        work: A function that other processes can import, or a partial of one.
        items: Consumed as processes become free; may be infinite.
        jobs: Number of processes; 1: this process alone, without joblib.
        scheduler: Address of a Dask scheduler whose workers do the work instead, one item per thread. An item
            whose worker dies is given to another.

    Yields:
        The index of an item, from 0, and its result, as soon as it is available.

    Raises:
        ConfigError: joblib or distributed is not installed, or no scheduler answers and has workers.
        HushbidError: A cluster lost an item repeatedly.
    """
    numbered = enumerate(items)
    if scheduler is not None:
        yield from _of_cluster(work, numbered, scheduler)
        return
    if jobs == 1:
        yield from (_done(work, place, item) for place, item in numbered)
        return
    need("joblib", "Work that several processes share")
    from joblib import Parallel, delayed

    # joblib replaces a process that has grown by 300 MB, for example by a cached dataset, and warns. The
    # warning is harmless, but where warnings are errors it would end the thread that manages processes.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    # Items have the right size already, so joblib must not batch them.
    pool: Any = Parallel(
        jobs, return_as="generator_unordered", batch_size=1, idle_worker_timeout=IDLE_SECONDS
    )
    yield from pool(delayed(_done)(work, place, item) for place, item in numbered)


def _of_cluster(
    work: Callable[[_Item], _Result], numbered: Iterable[tuple[int, _Item]], scheduler: str
) -> Iterator[tuple[int, _Result]]:
    need("joblib", "Work that a cluster shares")
    need("distributed", "Work that a cluster shares")
    from distributed import KilledWorker
    from joblib import Parallel, delayed, parallel_config

    with _connected(scheduler) as client, parallel_config("dask", client=client):
        pool: Any = Parallel(-1, return_as="generator_unordered", batch_size=1)
        try:
            yield from pool(delayed(_done)(work, place, item) for place, item in numbered)
        except KilledWorker as error:
            raise HushbidError(
                f"The cluster of {scheduler} lost the same work several times: its workers died.",
                advice="Look into the workers' logs, for memory above all; --output keeps what is done.",
            ) from error


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    import distributed

    base: Any = distributed.Client  # It has no type information.

    class Client(base):  # type: ignore[misc]
        """A client that leaves nothing behind when nobody answers.

        The library's client keeps its thread, or closes when it is garbage-collected. If the next client then
        holds the lock of all such threads, closing waits for it forever.
        """

        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:
                self.close()
                self._loop_runner.stop()
                raise

    try:
        client: Any = Client(scheduler, timeout=REACHED_WITHIN, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise ConfigError(
            f"No Dask scheduler answers at {scheduler}.",
            advice="Give the address that `dask scheduler` prints, as tcp://HOST:8786, and see that it runs.",
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=REACHED_WITHIN)
        except TimeoutError as error:
            raise ConfigError(
                f"The Dask scheduler at {scheduler} has no workers.",
                advice=f"Start some: `dask worker {scheduler}`, where hushbid is installed.",
            ) from error
        yield client


def _done(work: Callable[[_Item], _Result], place: int, item: _Item) -> tuple[int, _Result]:
    keep_one_blas_thread()
    return place, work(item)
