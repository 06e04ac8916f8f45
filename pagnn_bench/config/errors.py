"""The one exception that means «the request was wrong»."""


class RequestError(Exception):
    """A user's mistake, told in one sentence that names the key, the value and the valid choices.

    The command line prints the sentence without a traceback and exits with code 2.
    """
