"""A session runs outputs of its own page."""

import pytest

from poolgrad.graph import GraphError, Scope, Session, ops


def test_a_session_runs_outputs_of_its_page():
    scope, other = Scope.new_root_scope("one"), Scope.new_root_scope("other")
    const = ops.Const(other, "1", shape="[1]")
    with pytest.raises(GraphError, match="run: got 7"):
        Session(scope).run([7])
    with pytest.raises(GraphError, match="of another page"):
        Session(scope).run([const])
