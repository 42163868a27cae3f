"""How much of a study to run, as the native module takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

Tell = Callable[[int, int], None]


class Plan(TypedDict, total=False):
    """What a caller chose."""

    seeds: int | None
    seed: int | None
    quick: bool
    figure: str | None
    default_reading_only: bool


class Asked(TypedDict):
    """What a caller chose, with everything else as it is unless somebody says so."""

    seeds: int | None
    seed: int | None
    quick: bool
    figure: str | None
    default_reading_only: bool
    store: str | None


def asked(plan: Plan, store: str | None) -> Asked:
    """What a caller chose, with measurements kept in ``store``."""
    nothing: Asked = {
        "seeds": None,
        "seed": None,
        "quick": False,
        "figure": None,
        "default_reading_only": False,
        "store": store,
    }
    return {**nothing, **plan}
