"""What one step did to the channels other than names."""


class Effects:
    """What one step did to the channels."""

    __slots__ = (
        "reads", "external", "wrote", "units", "dirty", "untracked", "readings", "clock", "modules", "held"
    )


def nothing():
    """No effects."""
    effects = Effects()
    effects.reads, effects.external, effects.wrote, effects.units, effects.dirty = (), {}, {}, (), ()
    effects.untracked, effects.readings, effects.clock, effects.modules = (), (), False, frozenset()
    effects.held = None
    return effects
