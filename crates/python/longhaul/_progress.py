"""Progress bars, in terminals and notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ._plan import Tell


@contextmanager
def bar(what: str, shown: bool | None) -> Iterator[Tell]:
    """A bar that is told how much is done, and of how much. ``shown``: None draws it where somebody looks."""
    if shown is False or (shown is None and "ipykernel" not in sys.modules and not sys.stderr.isatty()):
        # Without tqdm, whose import takes as long as a small sweep.
        yield lambda done, total: None
        return
    with warnings.catch_warnings():
        # In a notebook without widgets there is no bar, which is no reason to complain.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    is_widget = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
    # tqdm takes None for: unless it is no terminal.
    disable = None if shown is None and not is_widget else False
    form = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}<{remaining}"
    with tqdm(total=1, desc=what, disable=disable, leave=False, bar_format=form) as progress:

        def tell(done: int, total: int) -> None:
            progress.total = max(total, 1)
            progress.update(done - progress.n)

        yield tell
