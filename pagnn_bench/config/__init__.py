"""From words to a resolved configuration: the sweep, the identity of a cell, what can be chosen, errors."""
