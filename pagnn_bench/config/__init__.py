"""From a command's words to a resolved configuration: the sweep, the identity of a cell, the choices, errors."""
