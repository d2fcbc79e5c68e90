"""What can be overridden is honoured: short cuts serve only what they were written for."""


def written_for(kind: type, short_cut: str, original: str) -> bool:
    """Whether a class's `short_cut` knows its `original`: no subclass overrode the latter alone.

    >>> class Slow:
    ...     def step(self): ...
    ...     def fast(self): ...
    >>> class Other(Slow):
    ...     def step(self): ...
    >>> written_for(Slow, "fast", "step"), written_for(Other, "fast", "step")
    (True, False)
    """
    return issubclass(owner(kind, short_cut), owner(kind, original))


def owner(kind: type, name: str) -> type:
    """The class that a method comes from."""
    return next(base for base in kind.__mro__ if name in vars(base))
