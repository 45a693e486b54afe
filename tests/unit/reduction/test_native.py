"""How kernels are compiled, and kept where that can be."""

import subprocess
import sys

import numba
import pytest

from provenance_store.reduction import native

CALLED = """
from provenance_store.reduction.warm import warm_up
import numba, sys
warm_up()
kernels = [k for name, m in list(sys.modules.items()) if name.startswith("provenance_store.reduction.")
           for k in vars(m).values() if isinstance(k, numba.core.dispatcher.Dispatcher)]
print(sorted({k.py_func.__name__ for k in kernels if k._cache.cache_path and not k.signatures} - {"siphash"}))
"""


def test_a_kernel_is_compiled_also_where_it_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = numba.njit

    def refuse(*, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_(**options)

    with monkeypatch.context() as patched:
        patched.setattr(native.numba, "njit", refuse)
        kernel = native.compiled(lambda number: number + 1)
    assert kernel(1) == 2


def test_warming_up_calls_every_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", CALLED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_command_line_starts_without_native_code() -> None:
    program = "import sys, provenance_store.cli.main; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
