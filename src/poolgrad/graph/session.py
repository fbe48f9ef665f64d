"""Session: run the blocks that the fetched outputs need; cache results until a block changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import short_repr
from .executor import Cache, Progress, Run, execute, with_feeds
from .model import GraphError
from .repair import repaired
from .scope import Operation, Output, Scope, as_output

Array = npt.NDArray[Any]
Fetch = Output | Operation | str


class Session:
    """Run the blocks that outputs need; cache results until a block changes.

    Parameters
    ----------
    scope : Scope
        The page to run.
    cache : Cache, optional
        Keeps results. Default: a new cache of 256 MB.

    Attributes
    ----------
    last : Run or None
        The last run: status, time and arrays of every block.

    Examples
    --------
    >>> from poolgrad.graph import Scope, Session, ops
    >>> s = Scope.new_root_scope()
    >>> x = ops.Placeholder(s, shape=[1, 2, 2, 1])
    >>> y = ops.MaxPool(s, x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    >>> Session(s).run([y], {x: [[[[1], [5]], [[2], [3]]]]})[0].tolist()
    [[[[5.0]]]]
    """

    def __init__(self, scope: Scope, cache: Cache | None = None) -> None:
        self.scope, self.cache = scope, cache if cache is not None else Cache()
        self.last: Run | None = None

    def run(self, fetches: Any, feeds: Any = None, progress: Progress | None = None) -> Any:
        """Return the arrays of outputs.

        Parameters
        ----------
        fetches : Output, Operation, str, or a list of them
            The outputs to compute; a text is the name of an output, `y.output` or `y`.
        feeds : mapping, optional
            Arrays by placeholder. Feeds may also come first, as in TensorFlow's C++ API.
        progress : callable, optional
            Called as `progress(done, blocks, name)` before each block.

        Returns
        -------
        ndarray or list of ndarray
            A copy of each result; a list if `fetches` is one.

        Raises
        ------
        GraphError
            If an output does not exist or did not run; `problems` lists the reasons.
        """
        if isinstance(fetches, Mapping):
            fetches, feeds = feeds, fetches
        asked = fetches if isinstance(fetches, (list, tuple)) else [fetches]
        ends = [self._end(fetch) for fetch in asked]
        given = {self._end(key).node: value for key, value in (feeds or {}).items()}
        for name in given:
            if self.scope.page.nodes[name].op != "Placeholder":
                raise GraphError(f"{name}: got a value to feed, wanted a Placeholder")
        wanted = [end.node for end in ends]
        run = execute(self.scope.page, with_feeds(self.scope.sources, given), self.cache, wanted, progress)
        self.last = run
        arrays = [run.array(end.name) for end in ends]
        if any(array is None for array in arrays):
            self._refuse(run, [end.name for end, array in zip(ends, arrays, strict=True) if array is None])
        found = [np.array(array) for array in arrays]
        return found if isinstance(fetches, (list, tuple)) else found[0]

    def _end(self, fetch: Fetch) -> Output:
        if isinstance(fetch, str):
            return self.scope.output(fetch)
        if not isinstance(fetch, (Output, Operation)):
            raise GraphError(f"run: got {short_repr(fetch)}, wanted an output, or its name")
        end = as_output(fetch)
        if end.scope.page is not self.scope.page:
            raise GraphError(f"run: got {end.name} of another page, wanted an output of {self.scope.page.name!r}")
        return end

    def _refuse(self, run: Run, missing: Sequence[str]) -> None:
        problems = [p for p in repaired(self.scope.page, run.checked) if p.node is None or p.node in run.blocks]
        raise GraphError(f"{', '.join(missing)}: did not run: {'; '.join(map(str, problems))}", problems)
