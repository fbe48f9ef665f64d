"""gradients(y, x): add the blocks that compute a derivative of any order. The op table relates the ops.

    MaxPool -> MaxPoolGrad -> MaxPoolGradGrad -> MaxPoolGrad -> ...        AvgPool -> AvgPoolGrad -> AvgPool -> ...
    max_pool -> max_pool_grad -> max_pool_tangent -> max_pool_grad -> ...

The taps of a maximum are piecewise constant, so nothing flows through orig_input and orig_output.
"""

from __future__ import annotations

from typing import Any

from .._explain.pools import GRADIENT, POOL
from .._ops.semantics import Kernel, WindowRule
from .._ops.table import Kind, Op, Param
from . import literals, text
from .blocks import optional
from .model import GraphError
from .op_family import relative
from .pool_calls import SECOND, PoolForm
from .scope import Operation, Output, Scope, Tensor, as_output, ops

_KEPT = (Kind.FORMAT, Kind.PADS, Kind.FLAG)


def gradients(y: Tensor, x: Tensor, grad_y: Tensor | None = None) -> Output:
    """Add the blocks that compute a derivative; return its output.

    Parameters
    ----------
    y : Output or Operation
        The result to derive.
    x : Output or Operation
        The array to derive with respect to; y must depend on it.
    grad_y : Output or Operation, optional
        The weight of each element of y, of y's shape. Default: ones.

    Returns
    -------
    Output
        The derivative, with the shape of x. Derive it again for higher orders.

    Raises
    ------
    GraphError
        If the outputs lie on different pages, or y does not depend on x through blocks that have derivatives.

    Examples
    --------
    >>> from poolgrad.graph import Scope, gradients, ops
    >>> s = Scope.new_root_scope()
    >>> x = ops.Const(s.with_op_name("x"), [[[[1.0], [5.0]], [[2.0], [3.0]]]])
    >>> y = ops.MaxPool(s.with_op_name("y"), x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    >>> dx = gradients(y, x)
    >>> s.page.nodes[dx.node].op, dx.shape
    ('MaxPoolGrad', (1, 2, 2, 1))
    """
    target, source = as_output(y), as_output(x)
    scope = target.scope.with_op_name("")
    if source.scope.page is not scope.page or (grad_y is not None and as_output(grad_y).scope.page is not scope.page):
        raise GraphError("gradients: got outputs of two pages, wanted y, x and grad_y on one page")
    return _Chain(scope, source).back(target, None if grad_y is None else as_output(grad_y))


class _Chain:
    """A walk back from y to x, block by block."""

    def __init__(self, scope: Scope, x: Output) -> None:
        self.scope, self.x = scope, x
        self.reached = self._descendants()

    def _descendants(self) -> set[str]:
        """Return the blocks that depend on x."""
        seen = self.scope.checked.seen
        found: set[str] = set()
        for name in self.scope.checked.order:
            sources = seen[name].sources.values()
            if any(s == self.x.name or s.partition(".")[0] in found for s in sources):
                found.add(name)
        return found

    def back(self, y: Output, g: Output | None) -> Output:
        if y.name != self.x.name and y.node not in self.reached:
            raise GraphError(f"gradients: got {y.name}, wanted an output that depends on {self.x.name}")
        arrived = {y.name: g if g is not None else self._filled("ones", y, f"{y.node}_ones")}
        for name in reversed(list(self.scope.checked.order)):
            node = self.scope.page.nodes[name]
            block = self.scope.checked.seen[name].block
            ends = [f"{name}.{pin}" for pin in block.outputs] if block else []
            if name not in self.reached or not any(end in arrived for end in ends):
                continue
            if any(end in arrived for end in ends[1:]):
                raise GraphError(f"gradients: {name}: got {ends[1]}, wanted {ends[0]}: positions have no derivative")
            if node.op == "Add":
                flows: dict[str, Output] = dict.fromkeys(("x", "y"), arrived[ends[0]])
            else:
                flows = self._through(name, arrived[ends[0]])
            for pin, flow in flows.items():
                self._add(arrived, self.scope.checked.seen[name].sources[pin], flow)
        return arrived.get(self.x.name) or self._filled("zeros", self.x, f"{self.x.node}_zeros")

    def _filled(self, words: str, like: Output, name: str) -> Output:
        if like.shape is None or like.dtype is None:
            raise GraphError(f"gradients: {like.name}: got a shape that is not known yet, wanted one: give it a shape")
        sizes, dtype = literals.bracketed(like.shape), text.enumerator(like.dtype)
        return as_output(ops.Const(self.scope.with_op_name(name), words, shape=sizes, dtype=dtype))

    def _add(self, arrived: dict[str, Output], end: str, flow: Output) -> None:
        """Add a gradient to those that reached the same output by other paths."""
        node = end.partition(".")[0]
        if end != self.x.name and node not in self.reached:
            return
        if end in arrived:
            flow = as_output(ops.Add(self.scope.with_op_name(f"{node}_sum"), arrived[end], flow))
        arrived[end] = flow

    # ---- one op

    def _through(self, name: str, g: Output) -> dict[str, Output]:
        """Return the gradient that a block passes to its one linear input."""
        seen = self.scope.checked.seen[name]
        if seen.block is not None and seen.block.pool is not None:
            return self._through_pool(name, seen.block.pool, g)
        op = seen.block.row if seen.block else None
        if op is None:
            return {}
        pin = linear_input(op)
        if pin is None or pin not in seen.sources:
            raise GraphError(f"gradients: {name}: {op.name} has no derivative: there is no block for it")
        end = seen.sources[pin]
        if end != self.x.name and end.partition(".")[0] not in self.reached:
            return {}  # x decides only the taps, which are piecewise constant
        derivative = derivative_of(op)
        if derivative is None:
            message = f"{op.name} has no derivative with respect to {pin}: there is no block for it"
            raise GraphError(f"gradients: {name}: {message}")
        return {pin: self._block(name, op, derivative, g)}

    # ---- one pool

    def _through_pool(self, name: str, form: PoolForm, g: Output) -> dict[str, Output]:
        """Return the gradients that a pool, or a derivative of one, passes to its inputs."""
        seen = self.scope.checked.seen[name]
        wanted = [pin for pin, end in seen.sources.items()
                  if pin in form.inputs and (end == self.x.name or end.partition(".")[0] in self.reached)]  # fmt: skip
        rounded = [word for word in ("dtype", "rounding") if seen.values.get(word) is not None]
        if rounded:
            raise GraphError(
                f"gradients: {name}: got {rounded[0]}, wanted a {form.pool} without it: it has no derivative"
            )
        if form.form == SECOND and wanted:
            raise GraphError(
                f"gradients: {name}: {form.pool} has no derivative of a third order: there is no block for it"
            )
        found: dict[str, Output] = {}
        for pin in wanted:
            given = {p: self.scope.output(end) for p, end in seen.sources.items() if p in form.inputs}
            if pin == "x" and form.form != POOL:
                if not form.pool.startswith("lp"):
                    continue  # x decides only the taps, which are piecewise constant, or nothing
                bent = given | ({"v": g} if form.form == GRADIENT else {"g": g})
                found[pin] = self._pool_block(name, f"{form.pool}_second", bent)
            elif pin == "g":
                found[pin] = self._pool_block(name, f"{form.pool}_tangent", {"x": given["x"], "v": g})
            else:
                found[pin] = self._pool_block(name, f"{form.pool}_grad", {"x": given["x"], "g": g})
        return found

    def _pool_block(self, name: str, to: str, inputs: dict[str, Output]) -> Output:
        node = self.scope.page.nodes[name]
        made = getattr(ops, to)(self.scope.with_op_name(f"{name}_grad"), **inputs, **node.text)
        assert isinstance(made, Operation)
        return as_output(made)

    def _block(self, name: str, op: Op, to: Op, g: Output) -> Output:
        seen, node = self.scope.checked.seen[name], self.scope.page.nodes[name]
        given: dict[str, Any] = {}
        for p in to.params:
            value = self._argument(name, op, to, p, g)
            if value is not None:
                given[p.name] = value
        padding = seen.values.get("padding")
        if padding is not None and padding not in to.paddings:
            raise GraphError(
                f"gradients: {name}: {to.name} has no padding {padding}, so this {op.name} has no derivative"
            )
        kept = {n: v for n, v in seen.values.items() if n in optional(to) and optional(to)[n].kind in _KEPT}
        made = getattr(ops, to.name)(
            self.scope.with_op_name(f"{node.id}_grad"), **given, attrs=text.written_attrs(kept)
        )
        assert isinstance(made, Operation)
        return as_output(made)

    def _argument(self, name: str, op: Op, to: Op, p: Param, g: Output) -> Any:
        """Return the value of an argument of the derivative block."""
        seen, node = self.scope.checked.seen[name], self.scope.page.nodes[name]
        if p.name == linear_input(to):
            return g
        if p.kind is Kind.SOURCE:
            return self.scope.output(seen.sources[next(q.name for q in op.params if q.kind is Kind.SOURCE)])
        if p.kind is Kind.DEST:  # orig_output
            return self.scope.output(seen.sources.get(p.name, f"{name}.{op.outputs[0]}"))
        if p.kind is Kind.SHAPE:
            x = self.scope.output(seen.sources[linear_input(op) or ""])
            return ops.Shape(self.scope.with_op_name(f"{x.node}_shape"), x, out_type=text.enumerator(p.dtype))
        if p.kind in (Kind.INDEX, Kind.SEQUENCE):
            return self.scope.output(seen.sources.get(p.name, f"{name}.{p.name}"))
        if p.name in seen.sources:
            return self.scope.output(seen.sources[p.name])
        return node.text.get(p.name)


def linear_input(op: Op) -> str | None:
    """Return the input in which an op is linear once its taps are fixed: the pooled input, or the gradient."""
    if op.family.startswith("q"):
        return None
    return [p.name for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST)][-1]


def derivative_of(op: Op) -> Op | None:
    """Return the adjoint of an op, or None.

    >>> from poolgrad._ops.table import OPS
    >>> [derivative_of(OPS[n]).name for n in ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "AvgPoolGrad")]
    ['MaxPool3DGrad', 'MaxPool3DGradGrad', 'MaxPool3DGrad', 'AvgPool']
    >>> derivative_of(OPS["FractionalMaxPoolGrad"])
    """
    if op.order != 1:
        return relative(op, 1)
    if op.rule.verb is Kernel.SPREAD:
        return (
            None if op.rule.windows is WindowRule.EDGES else relative(op, 0)
        )  # a fractional mean draws its own windows
    return relative(op, 2)
