"""The kinds of argument, one class each. To add a kind, add a class here and name it at the end.

A kind checks a value, reads it from text, writes it as text, describes it, and says how a problem line, a page of blocks and the
cache of calls use it. No other module knows how arguments of a kind look. Methods that read text import `text` when they run,
because `import poolgrad` does not need it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors, short_repr
from .dtypes import POSITIONS, enumerator

Array = npt.NDArray[Any]
REQUIRED: Any = ...
INT32_MAX = 2**31 - 1
WIRED, TYPED, EITHER = "input", "text", "either"  # how a block on a page takes an argument


if TYPE_CHECKING:

    class Row(Protocol):
        """The facts about an op that decide how its arguments look: a row of the table has them."""

        @property
        def order(self) -> int: ...  # of the derivative
        @property
        def spatial(self) -> int: ...  # pooled dimensions
        @property
        def dtypes(self) -> tuple[str, ...]: ...
        @property
        def formats(self) -> tuple[str, ...]: ...  # layouts, the default first
        @property
        def paddings(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Param:
    """One argument of an op."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    dtype: str = ""  # of SHAPE and SEQUENCE arguments

    @property
    def plain_default(self) -> Any:
        """Return the default as a caller would write it."""
        return list(self.default) if isinstance(self.default, tuple) else self.default

    def show_default(self) -> str:
        """Return the default as text that `Kind.parse` reads back."""
        return self.kind.show(self.default)


class Kind:
    """One kind of argument. The class attributes name the kinds."""

    SOURCE: ClassVar[Kind]
    DEST: ClassVar[Kind]
    INDEX: ClassVar[Kind]
    SHAPE: ClassVar[Kind]
    SEQUENCE: ClassVar[Kind]
    RANGE: ClassVar[Kind]
    SIZES: ClassVar[Kind]
    SIZES_TENSOR: ClassVar[Kind]
    PADDING: ClassVar[Kind]
    PADS: ClassVar[Kind]
    FORMAT: ClassVar[Kind]
    RATIO: ClassVar[Kind]
    FLAG: ClassVar[Kind]
    SEED: ClassVar[Kind]
    INDEX_TYPE: ClassVar[Kind]
    NAME: ClassVar[Kind]

    doc = ""  # a few words: what the argument is
    is_array = False  # bind gets it among the arrays
    is_cells = False  # the kernels read its elements
    by_value = True  # bind reads its value, not only its shape and dtype
    entry = TYPED  # how a block takes it
    field = "word"  # the form field of a block: tensor, ints, floats, word
    starts_empty = False  # a new block has no text for it
    in_attrs = True  # the attributes of a new block show it
    like = ""  # a text that fits, for errors of the command line; "" if bind judges the text itself
    words: ClassVar[Mapping[str, str]] = {}  # the words of a problem line that set it, each with the argument's name
    bare_words = False  # these words take no value

    def __init__(self, doc: str = "") -> None:
        self.doc = doc or self.doc

    @property
    def name(self) -> str:
        """Return the name of the class attribute that holds this kind."""
        return next((name for name, kind in vars(Kind).items() if kind is self), type(self).__name__)

    def __repr__(self) -> str:
        return f"Kind.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (Kind, self.name)

    # ---- values

    def absent(self, op: Row) -> Any:
        """Return the value that stands for an argument that was not given."""
        return None

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> Any:
        """Return the value in its own type, or record an error and return None or a value that does no harm."""
        return value

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...] | None:
        """Return the types that an array of this kind may have; None if the argument is no array."""
        return None

    def rank(self, op: Row) -> int | None:
        """Return the number of dimensions of an array of this kind; None if the argument is no array."""
        return None

    # ---- text

    def parse(self, given: str, op: Row, param: Param) -> Any:
        """Read the value from text; raise TextError if the text is wrong."""
        raise NotImplementedError

    def convert(self, value: Any, param: Param) -> Any:
        """Turn a parsed value into the argument."""
        return value

    def show(self, value: Any) -> str:
        """Write a value as text that `parse` reads back."""
        from .text import written

        return written(value)

    def sample(self, op: Row, param: Param) -> str:
        """Return an example text that fits the op's rank."""
        return ""

    def choices(self, op: Row) -> tuple[str, ...] | None:
        """Return the words to choose from; None if there is no fixed choice."""
        return None

    # ---- problem lines

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the value that a problem line says; raise LookupError if the line leaves it open."""
        raise LookupError(param.name)

    def _said(self, line: Any, param: Param) -> Any:
        return getattr(line, next(word for word, name in self.words.items() if name == param.name))

    # ---- descriptions

    def annotation(self, op: Row) -> str:
        """Return the type in the stub of raw_ops."""
        return "npt.ArrayLike"

    def type_name(self, op: Row, param: Param) -> str:
        """Return the type in the words of a docstring."""
        return "array_like"

    def meaning(self, op: Row, param: Param) -> str:
        """Return what the argument means, one or two sentences for a docstring."""
        return f"{self.doc[0].upper()}{self.doc[1:]}."

    # ---- the cache of calls

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Return Python text: the condition under which a call may be found in the cache, and the parts of its key."""
        return "False", []  # never

    def shapeless_key(self, name: str) -> list[str]:
        """Return the parts of a key that calls on arrays of other shapes share."""
        return self.cache_key(name)[1]

    def run_argument(self, name: str) -> str:
        """Return Python text: the value that a cached call takes anew each time; "" if the key says it all."""
        return ""


# ---- arrays


class Cells(Kind):
    """An array whose elements the kernels read."""

    is_array = is_cells = True
    by_value = False
    entry = WIRED
    field = "tensor"

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...]:
        """Return the op's types."""
        return op.dtypes

    def rank(self, op: Row) -> int:
        """Return the rank of the input."""
        return op.spatial + 2

    def type_name(self, op: Row, param: Param) -> str:
        """Name the rank."""
        return f"array_like, {self.rank(op)} dimensions"

    def meaning(self, op: Row, param: Param) -> str:
        """Say what the array is to the op."""
        if self is Kind.DEST:
            if param.name == "orig_output":
                return "The result of the forward operator for `orig_input`."
            return "The gradient of a loss with respect to the output of the forward operator."
        if param.name == "grad":
            return "The gradient of a loss with respect to the first-order gradient; it has the shape of the input."
        return "The array to pool." if op.order == 0 else "The array that was pooled."

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take arrays by shape and dtype."""
        return f"{name}.__class__ is _array and ({name}.flags.carray or whole({name}))", [
            f"{name}.shape",
            f"{name}.dtype",
        ]

    def shapeless_key(self, name: str) -> list[str]:
        """Take arrays by rank and dtype."""
        return [f"{name}.ndim", f"{name}.dtype"]

    def run_argument(self, name: str) -> str:
        """Return the array."""
        return name


class Positions(Cells):
    """Flat positions of maxima."""

    words: ClassVar[Mapping[str, str]] = {"argmax": "argmax"}

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...]:
        """Return the types of positions."""
        return POSITIONS

    def meaning(self, op: Row, param: Param) -> str:
        """Say what the positions count."""
        return (
            "Flat position of each maximum in its image, or in the batch if `include_batch_in_index`; int32 or int64."
        )


class Vector(Kind):
    """A vector of integers whose values decide about the windows."""

    is_array = True
    entry = EITHER
    field = "ints"
    starts_empty = True
    like = "integers like 1,2,2,1"

    def __init__(self, doc: str, meaning: str, sample: str = "") -> None:
        super().__init__(doc)
        self._meaning, self._sample = meaning, sample

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...]:
        """Return the one type that the row names."""
        return (param.dtype,)

    def rank(self, op: Row) -> int:
        """Return 1."""
        return 1

    def parse(self, given: str, op: Row, param: Param) -> list[int]:
        """Read integers that the type can hold."""
        bits = 31 if param.dtype == "int32" else 63
        from .text import ints

        return ints(given, -(2**bits), 2**bits - 1)

    def convert(self, value: Any, param: Param) -> Array:
        """Make the vector."""
        return np.array(value, param.dtype)

    def sample(self, op: Row, param: Param) -> str:
        """Return an example."""
        return self._sample or ",".join(["1", *["4"] * op.spatial, "1"])

    def from_line(self, line: Any, param: Param) -> Any:
        """Spell the shape of the input; leave sequences open."""
        if self is Kind.SHAPE:
            return np.array(line.x, param.dtype)
        return super().from_line(line, param)

    def type_name(self, op: Row, param: Param) -> str:
        """Name the dtype."""
        return f"array_like, {param.dtype} vector"

    def meaning(self, op: Row, param: Param) -> str:
        """Return the sentence."""
        return self._meaning

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take vectors by value."""
        return "", [f"_vector({name})"]

    def shapeless_key(self, name: str) -> list[str]:
        """Take vectors by class, dtype and length."""
        return [f"{name}.__class__", f"getattr({name}, 'dtype', None)", f"len({name})"]


class Borders(Vector):
    """A pooling sequence. Calls that differ by it share a key: each may bring a new one."""

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Leave it out."""
        return "", []

    def run_argument(self, name: str) -> str:
        """Return the borders as bytes."""
        return f"_borders({name})"


class Range(Kind):
    """An end of the range of quantised codes, which is passed on."""

    doc = "a float32 scalar"
    is_array = True
    by_value = False
    entry = EITHER
    field = "floats"
    like = "numbers like 1,1.44,1.44,1"

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...]:
        """Return float32."""
        return ("float32",)

    def rank(self, op: Row) -> int:
        """Return 0."""
        return 0

    def parse(self, given: str, op: Row, param: Param) -> list[float]:
        """Read numbers; bind refuses more than one."""
        from .text import floats

        return floats(given)

    def convert(self, value: Any, param: Param) -> Array:
        """Make the scalar."""
        return np.array(value[0] if len(value) == 1 else value, np.float32)

    def sample(self, op: Row, param: Param) -> str:
        """Return an example."""
        return "-1" if param.name.startswith("min") else "1"

    def from_line(self, line: Any, param: Param) -> Array:
        """Return the example."""
        return self.convert([float(self.sample(line, param))], param)

    def type_name(self, op: Row, param: Param) -> str:
        """Name the dtype."""
        return "array_like, float32 scalar"

    def meaning(self, op: Row, param: Param) -> str:
        """Say what becomes of it."""
        end = "smallest" if param.name.startswith("min") else "largest"
        return f"The number that the {end} code stands for; returned unchanged."

    cache_key = Cells.cache_key


# ---- lists


def listed(errors: ArgumentErrors, name: str, value: Any, count: int, wanted: str) -> list[Any] | None:
    """Return the entries of a list of `count`; read at most one more, since the list may be longer than its len()."""
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__iter__") and hasattr(value, "__len__")):
        errors.add(name, short_repr(value), wanted, TypeError)
    elif len(value) != count or len(entries := list(islice(value, count + 1))) != count:
        errors.add(name, f"{short_repr(value)}, {len(value)} entries", wanted)
    else:
        return entries
    return None


class Sizes(Kind):
    """A list of 32-bit integers, one per dimension."""

    doc = "an integer per dimension"
    field = "ints"
    like = "integers like 1,2,2,1"
    words: ClassVar[Mapping[str, str]] = {"k": "ksize", "s": "strides"}
    tensor = False  # an array must be an int32 vector

    def count(self, op: Row) -> int:
        """Return the number of entries."""
        return op.spatial + 2

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> tuple[int, ...] | None:
        """Return exactly as many 32-bit integers as the op needs."""
        name, count = param.name, self.count(op)
        wanted = f"a list of {count} integers"
        try:
            if isinstance(value, np.ndarray) or (self.tensor and hasattr(value, "__array__")):
                value = self._unpacked(errors, name, np.asarray(value), wanted)
            entries = listed(errors, name, value, count, wanted)
            ints = None if entries is None else tuple(map(index, entries))
        except Exception:
            errors.add(name, short_repr(value), wanted, TypeError)
            return None
        if ints is None or all(-INT32_MAX - 1 <= v <= INT32_MAX for v in ints):
            return ints
        errors.add(name, short_repr(value), f"{wanted} within 32 bits")
        return None

    def _unpacked(self, errors: ArgumentErrors, name: str, value: Array, wanted: str) -> list[int] | None:
        if value.ndim != 1:
            errors.add(name, f"an array of shape {list(value.shape)[:8]}", wanted)
        elif value.dtype.kind not in "iu" or (self.tensor and value.dtype.name != "int32"):
            wanted = "an int32 vector" if self.tensor else wanted
            errors.add(name, f"an array of dtype {value.dtype.name}", wanted, TypeError)
        else:
            return list(value.tolist())
        return None

    def parse(self, given: str, op: Row, param: Param) -> list[int]:
        """Read 32-bit integers."""
        from .text import ints

        return ints(given, -INT32_MAX - 1, INT32_MAX)

    def sample(self, op: Row, param: Param) -> str:
        """Return windows of 2 along the pooled dimensions."""
        return ",".join(["1", *["2"] * op.spatial, "1"])

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the sizes as a list."""
        return self.convert(list(self._said(line, param)), param)

    def annotation(self, op: Row) -> str:
        """Name the alias in the stub."""
        return "Sizes"

    def type_name(self, op: Row, param: Param) -> str:
        """Name the length."""
        return f"sequence of {self.count(op)} int"

    def meaning(self, op: Row, param: Param) -> str:
        """Say what the entries measure."""
        what = "Window size" if param.name == "ksize" else "Step between windows"
        return f"{what} per dimension, in the order of {_order(op)}; 1 for the batch."

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take lists by value: bytes() of a list is quick and takes small integers only, so 2.0 is never mistaken for 2."""
        return f"{name}.__class__ in _lists", [f"bytes({name})"]


class SizesTensor(Sizes):
    """As Sizes, but an array must be an int32 vector, and a wire may bring it."""

    doc = "an int32 vector, an integer per dimension"
    entry = EITHER
    tensor = True

    def dtypes(self, op: Row, param: Param) -> tuple[str, ...]:
        """Return int32."""
        return ("int32",)

    def rank(self, op: Row) -> int:
        """Return 1."""
        return 1

    def convert(self, value: Any, param: Param) -> Array:
        """Make the vector."""
        return np.array(value, np.int32)

    def type_name(self, op: Row, param: Param) -> str:
        """Name the length and the dtype."""
        return f"sequence of {self.count(op)} int, or an int32 vector"

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take vectors by value."""
        return "", [f"_vector({name})"]


class Pads(Sizes):
    """Explicit padding: cells before and after, per dimension."""

    doc = "a pair of integers per dimension"
    in_attrs = False
    words: ClassVar[Mapping[str, str]] = {}

    def count(self, op: Row) -> int:
        """Return two per dimension."""
        return 2 * (op.spatial + 2)

    def from_line(self, line: Any, param: Param) -> list[int]:
        """Return the padding of the line."""
        return list(line.pads)

    def meaning(self, op: Row, param: Param) -> str:
        """Say when it counts."""
        return f"Cells before and after, per dimension, in the order of {_order(op)}; read only if `padding` is 'EXPLICIT'."


class RatioList(Kind):
    """A list of float32 numbers, one per dimension."""

    doc = "a float per dimension"
    field = "floats"
    like = "numbers like 1,1.44,1.44,1"
    words: ClassVar[Mapping[str, str]] = {"ratio": "pooling_ratio"}

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> tuple[float, ...] | None:
        """Return exactly one number per dimension, rounded to float32."""
        count = op.spatial + 2
        wanted = f"a list of {count} numbers"
        try:
            entries = listed(errors, param.name, value, count, wanted) or []
            with np.errstate(over="ignore"):
                floats = tuple(float(np.float32(float(v) if abs(v) < 2**1000 else math.inf)) for v in entries)
        except Exception:
            entries, floats = [None], ()
        if all(isinstance(v, (int, float, np.integer, np.floating)) for v in entries):
            return floats or None
        errors.add(param.name, short_repr(value), wanted, TypeError)
        return None

    def parse(self, given: str, op: Row, param: Param) -> list[float]:
        """Read numbers."""
        from .text import floats

        return floats(given)

    def sample(self, op: Row, param: Param) -> str:
        """Return ratios of the pooled dimensions."""
        return ",".join(["1.0", *["1.44", "1.73"][: op.spatial], "1.0"])

    def from_line(self, line: Any, param: Param) -> list[float]:
        """Return the ratios as a list."""
        return list(self._said(line, param))

    def annotation(self, op: Row) -> str:
        """Return the type in the stub."""
        return "Sequence[float] | Array"

    def type_name(self, op: Row, param: Param) -> str:
        """Name the length."""
        return f"sequence of {op.spatial + 2} float"

    def meaning(self, op: Row, param: Param) -> str:
        """Say what is divided."""
        return "Length of the input over length of the output, at least 1, per dimension; 1 for batch and channels."

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take lists of plain numbers by value."""
        return (
            f"{name}.__class__ in _lists and len({name}) < 16 and _numbers.issuperset(map(type, {name}))",
            [f"tuple({name})"],
        )


# ---- words


class Word(Kind):
    """One of a few words; the first is the default."""

    def absent(self, op: Row) -> str:
        """Return the first word."""
        return self.choices(op)[0]

    def choices(self, op: Row) -> tuple[str, ...]:
        """Return the words."""
        raise NotImplementedError

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> str | None:
        """Return one of the words."""
        words = self.choices(op)
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(value, str) and (value := str.__str__(value)) in words:  # which may be equal to nothing by itself
            return value
        kind = ValueError if isinstance(value, str) else TypeError
        errors.add(param.name, short_repr(value), " or ".join(map(repr, words)), kind)
        return None

    def parse(self, given: str, op: Row, param: Param) -> str:
        """Read a word, in upper or lower case."""
        from .text import word

        return word(given, self.choices(op))

    def sample(self, op: Row, param: Param) -> str:
        """Return the first word."""
        return self.choices(op)[0]

    def annotation(self, op: Row) -> str:
        """Return the words as a type."""
        return "Literal[" + ", ".join(f'"{word}"' for word in self.choices(op)) + "]"

    def type_name(self, op: Row, param: Param) -> str:
        """Return the words as a set."""
        return "{" + ", ".join(map(repr, self.choices(op))) + "}"

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take words by value."""
        return f"{name}.__class__ is str", [name]


class Padding(Word):
    """A padding word."""

    doc = "a padding word"
    words: ClassVar[Mapping[str, str]] = {"pad": "padding"}

    def choices(self, op: Row) -> tuple[str, ...]:
        """Return the op's padding words."""
        return op.paddings

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the word of the line."""
        return line.padding

    def meaning(self, op: Row, param: Param) -> str:
        """Explain each word."""
        explicit = " 'EXPLICIT': as `explicit_paddings` says." if "EXPLICIT" in op.paddings else ""
        return "'VALID': only whole windows. 'SAME': a window per stride, cut off at the edges." + explicit


class Format(Word):
    """A layout."""

    doc = "the order of the dimensions"

    def choices(self, op: Row) -> tuple[str, ...]:
        """Return the op's layouts."""
        return op.formats

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the layout of the line."""
        return line.layout

    def meaning(self, op: Row, param: Param) -> str:
        """Spell the letters."""
        depth = "depth D, " if op.spatial == 3 else ""
        return f"The order of the dimensions: batch N, {depth}height H, width W, channels C."


class IndexType(Kind):
    """The dtype of positions."""

    doc = "int32 or int64"
    words: ClassVar[Mapping[str, str]] = {"argmax": "Targmax"}

    def absent(self, op: Row) -> str:
        """Return the default of TensorFlow."""
        return "int64"

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> str:
        """Return the name of the dtype; int64 if the value is wrong."""
        try:
            dtype = getattr(value, "as_numpy_dtype", value)
            name = np.dtype(dtype).name if dtype is not None else ""
        except Exception:
            name = ""
        if name in POSITIONS:
            return name
        errors.add(param.name, short_repr(value), "int32 or int64", TypeError)
        return "int64"

    def parse(self, given: str, op: Row, param: Param) -> str:
        """Read the name of a dtype."""
        from .text import dtype

        return dtype(given, POSITIONS)

    def show(self, value: Any) -> str:
        """Return TensorFlow's name of the dtype."""
        return enumerator(value)

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the dtype that the line names."""
        return line.index

    def annotation(self, op: Row) -> str:
        """Return the type in the stub."""
        return "npt.DTypeLike"

    def type_name(self, op: Row, param: Param) -> str:
        """Return the dtypes as a set."""
        return "{'int32', 'int64'}, or a dtype"

    def meaning(self, op: Row, param: Param) -> str:
        """Say what has the dtype."""
        return "The dtype of the positions."

    cache_key = Word.cache_key


# ---- single values


class Flag(Kind):
    """A bool."""

    doc = "a bool"
    like = "true or false"
    bare_words = True
    words: ClassVar[Mapping[str, str]] = {
        "overlapping": "overlapping",
        "pseudo": "pseudo_random",
        "batched": "include_batch_in_index",
    }
    MEANINGS: ClassVar[Mapping[str, str]] = {
        "overlapping": "True: a window also has the first cell of the next one.",
        "pseudo_random": "True: draw one offset and space the borders evenly. False: put shorter and longer windows in random order.",
        "deterministic": "True: draw from the seeds, or from seeds fixed in this process. False: draw anew in every call.",
        "include_batch_in_index": "True: positions count from the first image. False: from the start of their own image.",
    }

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> bool:
        """Return a bool; None counts as False."""
        if value is not None and not isinstance(value, (bool, np.bool_)):
            errors.add(param.name, short_repr(value), "True or False", TypeError)
            return False
        return bool(value)

    def parse(self, given: str, op: Row, param: Param) -> bool:
        """Read true or false."""
        from .text import boolean

        return boolean(given)

    def from_line(self, line: Any, param: Param) -> Any:
        """Return True if the line has the word; lines are always deterministic."""
        return param.name not in self.words.values() or self._said(line, param)

    def annotation(self, op: Row) -> str:
        """Return the type in the stub."""
        return "bool"

    def type_name(self, op: Row, param: Param) -> str:
        """Return bool."""
        return "bool"

    def meaning(self, op: Row, param: Param) -> str:
        """Return the sentence about this flag."""
        return self.MEANINGS.get(param.name, super().meaning(op, param))

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Take bools only: 1 equals True."""
        return f"{name}.__class__ is bool", [name]


class Seed(Kind):
    """A 64-bit integer."""

    doc = "a 64-bit integer"
    field = "ints"
    like = "integers like 1,2,2,1"
    words: ClassVar[Mapping[str, str]] = {"seed": "seed", "seed2": "seed2"}

    def validate(self, errors: ArgumentErrors, op: Row, param: Param, value: Any) -> int:
        """Return the integer; None counts as 0."""
        try:
            seed = index(value or 0)
        except Exception:
            errors.add(param.name, short_repr(value), "an integer", TypeError)
            return 0
        if not -(2**63) <= seed < 2**63:
            errors.add(param.name, seed, "an integer within 64 bits")
        return seed

    def parse(self, given: str, op: Row, param: Param) -> int:
        """Read one integer."""
        from .text import integer

        return integer(given)

    def from_line(self, line: Any, param: Param) -> Any:
        """Return the seed of the line."""
        return self._said(line, param)

    def annotation(self, op: Row) -> str:
        """Return the type in the stub."""
        return "int"

    def type_name(self, op: Row, param: Param) -> str:
        """Return int."""
        return "int"

    def meaning(self, op: Row, param: Param) -> str:
        """Say when it counts."""
        return "A 64-bit seed; needs `deterministic`. Both seeds 0: seeds drawn at random."

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Tell 0 from other seeds, which share a key: each call may bring a new one."""
        return f"{name}.__class__ is int and -(2**63) <= {name} < 2**63", [f"not {name}"]

    def run_argument(self, name: str) -> str:
        """Return the seed."""
        return name


class Name(Kind):
    """The name of a graph node, which TensorFlow takes and poolgrad ignores."""

    doc = "ignored"

    def annotation(self, op: Row) -> str:
        """Return the type in the stub."""
        return "str | None"

    def type_name(self, op: Row, param: Param) -> str:
        """Return str."""
        return "str, optional"

    def meaning(self, op: Row, param: Param) -> str:
        """Say that it means nothing."""
        return "Ignored; TensorFlow has it."

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        """Leave it out."""
        return "", []


def _order(op: Row) -> str:
    return "`data_format`" if len(op.formats) > 1 else op.formats[0]


Kind.SIZES, Kind.SIZES_TENSOR, Kind.PADDING, Kind.PADS = Sizes(), SizesTensor(), Padding(), Pads()
Kind.FORMAT, Kind.RATIO, Kind.FLAG, Kind.SEED = Format(), RatioList(), Flag(), Seed()
Kind.INDEX_TYPE, Kind.NAME = IndexType(), Name()
Kind.SOURCE = Cells("an array with the shape of the input")
Kind.DEST = Cells("an array with the shape of the output")
Kind.INDEX = Positions("flat positions, one per output cell")
Kind.SHAPE = Vector("the shape of the input, as a vector", "The shape of the array that was pooled.")
Kind.SEQUENCE = Borders("a pooling sequence", "Borders of the windows, from 0 to the length of the dimension.", "0,2,4")
Kind.RANGE = Range()

KINDS = tuple(kind for kind in vars(Kind).values() if isinstance(kind, Kind))
ARRAYS = tuple(kind for kind in KINDS if kind.is_array)
