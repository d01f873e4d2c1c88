"""Use of the SDK from asyncio: each call runs in a thread, and cancelling its task aborts the call."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .cancel import Cancel

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

MAX_THREADS = 256
"""Limit of concurrent calls; a waiting thread is idle."""
_END: Any = object()


class Threads:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, "roomd")
        self._running: set[Cancel] = set()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._under(Cancel(), functools.partial(function, *args, **kwargs))

    async def iterate(self, make: Callable[[], Iterable[T]]) -> AsyncGenerator[T, None]:
        """Yields the items of the iterable from `make`; each is awaited in a thread, which is free between two items."""
        cancel = Cancel()
        # One thread at a time: the thread that closes it is not the one that waits.
        lock = threading.Lock()
        iterator: Iterator[T] = iter(await self._under(cancel, make))

        def step() -> T:
            with lock:
                return next(iterator, _END)

        def close() -> None:
            with lock:
                if isinstance(iterator, Generator):
                    iterator.close()

        try:
            while (item := await self._under(cancel, step)) is not _END:
                yield item
        finally:
            cancel.cancel()
            # Not awaited: the generator may be collected when no loop runs.
            try:
                self._pool.submit(close)
            except RuntimeError:
                # The pool is shut down, and its calls have ended.
                close()

    def close(self) -> None:
        """Aborts waiting calls; pending closes are completed."""
        self._pool.shutdown(wait=False)
        for each in list(self._running):
            each.cancel()

    async def _under(self, cancel: Cancel, work: Callable[[], T]) -> T:
        def called() -> T:
            with cancel:
                return work()

        self._running.add(cancel)
        try:
            # The thread continues the same trace.
            within = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(self._pool, within.run, called)
        except asyncio.CancelledError:
            cancel.cancel()
            raise
        finally:
            self._running.discard(cancel)


class Wrapped(Generic[S]):
    """An object of the SDK whose methods run in threads."""

    def __init__(self, threads: Threads, plain: S) -> None:
        self._threads = threads
        self._plain = plain


class called(Generic[P, T]):
    """An awaitable method with the parameters of the plain one."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "called[P, T]": ...

    @overload
    def __get__(self, owner: Wrapped[Any], kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, owner: Wrapped[Any] | None, kind: type) -> Any:
        if owner is None:
            return self

        @functools.wraps(self._method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await owner._threads.run(self._method, owner._plain, *args, **kwargs)

        return call


class iterated(Generic[P, T]):
    """A method for `async for` with the parameters of the plain one."""

    def __init__(self, method: Callable[Concatenate[Any, P], Iterable[T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "iterated[P, T]": ...

    @overload
    def __get__(self, owner: Wrapped[Any], kind: type) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, owner: Wrapped[Any] | None, kind: type) -> Any:
        if owner is None:
            return self

        @functools.wraps(self._method)
        def iterate(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
            return owner._threads.iterate(functools.partial(self._method, owner._plain, *args, **kwargs))

        return iterate
