"""The exception that means «the request was wrong», and its usual sentence."""

from typing import Any, NoReturn


class RequestError(Exception):
    """A user's mistake. The message is one sentence that names the key, the value and the valid choices.

    The command line prints it without a traceback and exits with code 2.
    """


class UnsuitableError(RequestError):
    """A method that does not suit this request, although it may suit others.

    Attributes:
        reason: why not, in a few words.
    """

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence)
        self.reason = reason


def refuse(key: str, value: Any, choices: str) -> NoReturn:
    """Refuse a value, and say what can be given instead."""
    raise RequestError(f"{key}={value}: {choices}.")
