"""What README.md and docs/reproduction.md say of the results in words written by hand, each with its check."""

from sentences import explanations, headline, settings
from sentences.common import SENTENCES

__all__ = ["SENTENCES", "explanations", "headline", "settings"]
