"""Both forms of a method from one coroutine: blocking, without an event loop, and awaitable.

The coroutines of a blocking client never suspend, because its connections block (`network.py`).
"""

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("A blocking call awaited something of asyncio: use the classes that start with Async.")


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Makes a blocking function of a coroutine function, which `aio` returns."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(function(*args, **kwargs))

    call.coroutine = function  # type: ignore[attr-defined]
    return call


def iterating(function: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, Generator[T, None, None]]:
    """Makes a function with a blocking generator of one with an asynchronous generator, which `aiter_of` returns."""

    @functools.wraps(function)
    def iterate(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return _stepped(function(*args, **kwargs))

    iterate.coroutine = function  # type: ignore[attr-defined]
    return iterate


def _stepped(source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    try:
        while True:
            try:
                item = run(source.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(source.aclose())


def aio(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The coroutine function of a `blocking` one; of a method with the same object."""
    return _bound(method)


def aiter_of(method: Callable[P, Generator[T, None, None]]) -> Callable[P, AsyncGenerator[T, None]]:
    """The function with an asynchronous generator of an `iterating` one; of a method with the same object."""
    return _bound(method)


def _bound(method: Any) -> Any:
    owner = getattr(method, "__self__", None)
    return method.coroutine if owner is None else functools.partial(method.coroutine, owner)


class Wrapped(Generic[S]):
    """An object of the SDK on an asyncio client, with methods to await."""

    def __init__(self, plain: S) -> None:
        self._plain = plain


def called(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """An awaitable method with the parameters of the blocking one."""

    @functools.wraps(method)
    async def call(self: Wrapped[Any], *args: P.args, **kwargs: P.kwargs) -> T:
        return await aio(method)(self._plain, *args, **kwargs)

    return call


def iterated(
    method: Callable[Concatenate[Any, P], Generator[T, None, None]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[T, None]]:
    """A method for `async for` with the parameters of the blocking one."""

    @functools.wraps(method)
    def iterate(self: Wrapped[Any], *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return aiter_of(method)(self._plain, *args, **kwargs)

    return iterate
