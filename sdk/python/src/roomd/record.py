"""Base classes of what the service returns: dicts whose fields are attributes too."""

from collections.abc import Mapping
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar

REPR_CHARACTERS = 120
"""Maximum length of a record's `repr`."""


class _Short(Repr):
    """`repr` of a field, shortened."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlevel, self.maxdict, self.maxlist = 2, 3, 3


_SHORT = _Short()


class Fields(dict[str, Any]):
    """A JSON object of the service, for type checkers a typed dict of `roomd.schemas`: each field is a key and an attribute."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(f"{type(self).__name__} has no field {name}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Record(Fields):
    """A record of the service. Each field is an attribute and a key: `message.payload`, `message["payload"]`."""

    __slots__ = ()
    _shown: ClassVar[tuple[str, ...]] = ()
    """The fields in its `repr`: the identifying ones, and no secret."""
    _parts: ClassVar[Mapping[str, "type[Record]"]] = {}
    """Fields that hold records themselves, or lists of them."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Copies the fields of the service's JSON object; fields that this version does not know are kept."""
        super().__init__(fields)
        for name, kind in self._parts.items():
            part = self.get(name)
            if isinstance(part, Mapping):
                self[name] = kind(part)
            elif isinstance(part, list):
                self[name] = [kind(each) for each in part]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_SHORT.repr(self[name])}" for name in self._shown if name in self)
        text = f"{type(self).__name__}({fields})"
        return text if len(text) <= REPR_CHARACTERS else f"{text[: REPR_CHARACTERS - 2]}…)"
