"""Methods that E2B's class takes with an id, and its objects without: `Sandbox.kill(id)`, `sandbox.kill()`."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from ...coroutines import run
from .errors import translating

P = ParamSpec("P")
T = TypeVar("T")


class either(Generic[P, T]):
    """A method of a sandbox, which its class takes too, with an id as the first argument."""

    def __init__(self, method: Callable[Concatenate[Any, P], T], by_id: str | None = None) -> None:
        """Decorates the method of an object. `by_id` names a class method that the class has in its place."""
        self._method = method
        self._by_id = by_id
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> Callable[P, T]: ...
    def __get__(self, owner: Any, kind: Any) -> Any:
        method = self._method
        if owner is not None:
            return method.__get__(owner, kind)
        if self._by_id is not None:
            return getattr(kind, self._by_id)

        @wraps(method)
        def of_id(sandbox_id: str, *args: Any, api_key: str | None = None, api_url: str | None = None, **more: Any) -> T:
            with translating():
                found = run(kind._found(sandbox_id, api_key, api_url))
            try:
                return method(found, *args, **more)
            finally:
                found._close()

        return of_id
