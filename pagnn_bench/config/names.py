"""Names with settings: ``pagnn_n``, or ``pagnn_n[hidden=32]`` where a setting is not the default."""

from __future__ import annotations

from typing import Self


class Name(str):
    """The name of a method, dataset, missing type or protocol, as text, and its two parts.

    It compares, sorts and prints as the whole text, so two settings of one method are two names.

    Attributes:
        plain: the name in the configuration.
        settings: what is not default, such as ``hidden=32,bias=false``; often empty.
    """

    plain: str
    settings: str

    def __new__(cls, plain: str, settings: str = "") -> Self:
        name = super().__new__(cls, f"{plain}[{settings}]" if settings else plain)
        name.plain, name.settings = plain, settings
        return name

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.plain, self.settings

    @classmethod
    def parse(cls, text: str) -> Name:
        """Parse the text of a name; a :class:`Name` is returned as it is."""
        if isinstance(text, Name):
            return text
        plain, bracket, settings = text.partition("[")
        return cls(plain, settings.removesuffix("]")) if bracket else cls(text)
