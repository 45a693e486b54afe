"""What the kernels share: how they are compiled, and the few machine instructions that Python has no name for.

Kernels are Python functions on arrays that numba compiles at their first call: no compiler is needed where Headwater is
installed. That takes about twenty seconds for all of them, once: the machine code is kept beside the module that holds
the kernel, in `__pycache__`, or in the user's cache folder where that cannot be written; where neither can be, each
process compiles anew. `python -m provenance_store.reduction.warm` does it beforehand. Numba compiles again when the
kernel's own file changes and does not look further, so kernels are made of parts in their own file, and this one.

Texts are read by address: numba counts the references to an array at every call that it is handed to, which costs more
than reading a word. The caller holds on to the array meanwhile, and pads it.

Importing numba takes about a second. What the command line imports at its start must not import this module.
"""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

P = ParamSpec("P")
T = TypeVar("T")

Word: TypeAlias = np.uint64
Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.int32]
Relations: TypeAlias = npt.NDArray[np.int8]
Flags: TypeAlias = npt.NDArray[np.bool_]

# A kernel may read this far beyond the bytes that it was given.
PADDING = 32


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function as machine code, with its types as before."""
    try:
        kernel: Callable[P, T] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep it in
        kernel = numba.njit(nogil=True)(function)
    return kernel


def part(function: Callable[P, T]) -> Callable[P, T]:
    """A part of kernels, compiled with them and not to be called from Python, which makes compiling shorter."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: Callable[P, T] = numba.njit(nogil=True, **options)(function)
    return made


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """What writes machine code, as the function that kernels call."""
    made: Callable[..., Any] = intrinsic(function)
    return made


@_instruction
def load_byte(_: Any, address: Any) -> Any:
    """The byte at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(place), ir.IntType(64))

    return types.int64(types.int64), generate


@_instruction
def load_word(_: Any, address: Any) -> Any:
    """The eight bytes from an address on, the first the least."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(types.int64), generate


@_instruction
def store_word(_: Any, address: Any, word: Any) -> Any:
    """Write eight bytes from an address on, as `load_word` reads them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], place, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@_instruction
def store_byte(_: Any, address: Any, byte: Any) -> Any:
    """Write a byte at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(arguments[1], ir.IntType(8)), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_instruction
def trailing_zeros(_: Any, word: Any) -> Any:
    """How many of the lowest bits of a word other than 0 are not set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_instruction
def swap_bytes(_: Any, word: Any) -> Any:
    """The word with its bytes in reverse, so that words compare as texts do."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


def pad(values: Sequence[bytes]) -> tuple[Bytes, Numbers, Numbers]:
    """Values in one buffer with zeros after each, and where each begins and ends."""
    gap = b"\0" * 8
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    ends = np.cumsum(sizes + len(gap)) - len(gap)
    buffer = np.frombuffer(gap.join([*values, b"\0" * PADDING]), np.uint8)
    return buffer, ends - sizes, ends
