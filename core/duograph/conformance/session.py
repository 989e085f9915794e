"""The state of one run of the conformance suite on one device.

The pytest plugin creates a `Session`, which selects the tests for a device and collects their
results. The tests themselves are in the ``test_`` modules.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import context
from ..backend import registry
from ..backend.protocol import Backend
from ..dtype import DType, bool_, complex64, complex128, float32, float64, int32
from ..execution.kernel_choice import fallback_counts
from ..placement import device_of
from ..version import OWN
from . import check, oracle
from .case import OpCase
from .cases import all_cases, families

if TYPE_CHECKING:
    from .case import Sample

__all__ = ["Session", "over"]

# The dtypes of a quick run; it tests gradients and compiled code in one of them.
QUICK = (bool_, int32, float32, complex64)
# A quick run compiles every 40th case as a whole function, and tests the layouts of one family.
QUICK_WHOLE, QUICK_FAMILY = 40, "example"
# The dtypes in which gradients are compared with finite differences.
WIDEST = (float64, complex128)


class Session:
    """State of one conformance run: the device under test, its declared gaps, and the results.

    Args:
        name: the device, such as "CPU" or "CPU:0"; None means the current device.
        quick: whether to test few dtypes (option --quick).
        chosen: the dtypes to test; if empty, those of the device or, in a quick run, a few of them.
        share: (k, n): test every n-th case from the k-th on, with k from 1.

    Attributes:
        unsupported: pattern of test names -> reason why the device will never pass these tests.
            They must raise UnsupportedOpError, or DeviceDTypeError for a dtype that the device
            lacks; a wrong result is a failure, and so is a DTypeError of an op.
        expected: pattern of test names -> reason why these tests fail for now; if one passes, it
            counts as failed.
        measured: measurements of the current test, which are reported but not checked: name ->
            number with its unit.
        figures: the measurements of all tests, in the same form.
        filters: reasons, such as options, why the tests of this run are not the whole suite.
        selected: number of tests that were selected to run; None if it is not known.
        finished: names of tests whose results come from an earlier run, which this one resumes.
    """

    def __init__(
        self,
        name: str | None,
        quick: bool,
        chosen: Sequence[DType] = (),
        *,
        sampled: bool = False,
        share: tuple[int, int] = (1, 1),
    ) -> None:
        self.device = device_of(name) if name else registry.current_device()
        self.name = self.device.name
        self.quick, self.sampled, self.share = quick, sampled, share
        oracle.install()
        self.backend = registry.backend(self.name)
        self.dtypes: tuple[DType, ...] = tuple(self.backend.dtypes)
        self.chosen = tuple(chosen)
        self.unsupported = _gaps(self.backend, "conformance_unsupported")
        self.expected = _gaps(self.backend, "conformance_expected_failures")
        self.refused: set[str] = set()
        self.results: dict[str, dict[str, Any]] = {}
        self.measured: dict[str, str] = {}
        self.figures: dict[str, str] = {}
        self.filters: list[str] = []
        self.selected: int | None = None
        self.finished: frozenset[str] = frozenset()
        self._before = 0

    @property
    def title(self) -> str:
        """One line with the tested device and the versions of duograph, Python and NumPy."""
        device = next(d for d in self.backend.devices() if d.index == self.device.index)
        return (
            f"{self.name} ({device.description or device.name}), duograph {OWN}, "
            f"Python {platform.python_version()}, NumPy {np.__version__}"
        )

    @property
    def plugin(self) -> str:
        """The package of the backend under test, with its version and module."""
        return next(e.origin for e in registry.entries().values() if e.backend is self.backend)

    def partial(self) -> list[str]:
        """Return why this run is not complete: its filters, and the tests that did not run."""
        if self.selected is None:
            return [*self.filters, "the processes that ran the tests did not finish"]
        missing = self.selected - len(self.results)
        left = [f"{missing} of {self.selected} tests did not run"] if missing > 0 else []
        return [*self.filters, *left]

    def begin(self) -> None:
        """Prepare one conformance test: select the device; reset measurements and `on_host`."""
        if registry.current_device() != self.device:
            context.set_context(device_target=self.name, device_id=self.device.index, debug=True)
        self._before = sum(fallback_counts.values())
        self.measured = {}
        check.start_test()

    def on_host(self) -> int:
        """Return how many op calls of this test ran on the host, for lack of a device kernel."""
        return sum(fallback_counts.values()) - self._before

    # ---- selection of tests ---------------------------------------------------------------------

    def cases(self) -> Sequence[OpCase]:
        """Return the cases that this run tests: all cases, or a part of them (option --share)."""
        number, parts = self.share
        return all_cases()[number - 1 :: parts]

    def dtypes_of(self, case: OpCase) -> list[DType]:
        """Return the dtypes for which this run tests a case: those that the device supports."""
        takes = [d for d in case.takes if d in (self.chosen or self.dtypes)]
        if not self.quick or self.chosen:
            return takes
        takes = [d for d in takes if d in QUICK] or takes[:1]
        return _in_turn(case, takes) if self.sampled else takes

    def compiled_dtypes(self, case: OpCase, takes: Sequence[DType]) -> list[DType]:
        """Return those of the dtypes `takes` of a case for which compiled code is tested."""
        if self.quick:
            return _first(takes)
        return _in_turn(case, takes) if self.sampled else list(takes)

    def differentiable_dtypes(self, case: OpCase) -> list[DType]:
        """Return the floating and complex dtypes of a case that has gradients."""
        if not case.differentiable:
            return []
        return [d for d in case.takes if d in (self.chosen or self.dtypes) and d.kind in "fc"]

    def gradient_dtypes(self, case: OpCase) -> list[DType]:
        """Return the dtypes for which a case's gradients are tested.

        Gradients in the widest dtypes are compared with finite differences.
        """
        takes = self.differentiable_dtypes(case)
        if self.quick:
            return _first(takes)
        if not self.sampled:
            return takes
        widest = [d for d in takes if d in WIDEST]
        return widest + _in_turn(case, [d for d in takes if d not in WIDEST])

    def some(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Return those of a case's `samples` for which gradients of compiled code are tested."""
        return samples[:1] if self.quick else samples[:2] if self.sampled else samples

    def forward(self) -> tuple[str, Sequence[object]]:
        return "case,dtype", [(c, d) for c in self.cases() for d in self.dtypes_of(c)]

    def compiled(self) -> tuple[str, Sequence[object]]:
        """Return the parameters of tests of compiled code: ("case,dtype", list of such pairs)."""
        chosen = [(c, self.compiled_dtypes(c, self.dtypes_of(c))) for c in self.cases()]
        return "case,dtype", [(c, d) for c, dtypes in chosen for d in dtypes]

    def regions(self) -> tuple[str, Sequence[object]]:
        """Return the parameters of tests of fused kernels: ("case,dtype", list of such pairs).

        Compilers are slow, so a run with both options, --quick and --sampled, tests only every
        second pair.
        """
        names, pairs = self.compiled()
        return names, pairs[::2] if self.quick and self.sampled else pairs

    def compiled_gradient(self) -> tuple[str, Sequence[object]]:
        """Return ("case,dtype", list of such pairs), to test gradients of compiled code."""
        chosen = [(c, self.compiled_dtypes(c, self.differentiable_dtypes(c))) for c in self.cases()]
        return "case,dtype", [(c, d) for c, dtypes in chosen for d in dtypes]

    def whole(self) -> tuple[str, Sequence[object]]:
        """Return ("case,dtype", list of such pairs), to test functions compiled as a whole.

        The list is empty if the backend can neither compile nor link whole functions. A compiler
        may take seconds for each: a run with the option --sampled tests every second case, and a
        quick run a few.
        """
        backend = registry.backend(self.name)
        takes = type(backend).compile_graph is not Backend.compile_graph or not backend.links(0)
        step = QUICK_WHOLE if self.quick else 2 if self.sampled else 1
        cases = self.cases()[::step] if takes else ()
        return "case,dtype", [(c, d) for c in cases for d in _first(self.dtypes_of(c))]

    def gradient(self) -> tuple[str, Sequence[object]]:
        return "case,dtype", [(c, d) for c in self.cases() for d in self.gradient_dtypes(c)]

    def second_order(self) -> tuple[str, Sequence[object]]:
        chosen = []
        for case in () if self.quick else self.cases():
            takes = self.gradient_dtypes(case)
            if case.second and takes:
                real = [d for d in takes if d is float64] or [d for d in takes if d is float32]
                chosen.append((case, (real or takes)[0]))
        return "case,dtype", chosen

    def layouts(self) -> tuple[str, Sequence[object]]:
        """Return ("family,", 1-tuples of names): op families to test with strided operands.

        A quick run tests one family.
        """
        return "family,", [(QUICK_FAMILY,)] if self.quick else [(name,) for name in families()]

    def layout_dtypes(self, case: OpCase) -> list[DType]:
        """Return a case's dtypes to test with non-contiguous operands: at most one of each kind.

        The kinds are bool, integer, float and complex.
        """
        takes = self.dtypes_of(case)
        return [d for d in takes if d in QUICK] or takes[:1]

    def cases_of(self, family: str) -> list[OpCase]:
        """Return the conformance test cases of a family of ops."""
        names = set(families()[family])
        return [case for case in all_cases() if case.name in names]

    def errors(self) -> tuple[str, Sequence[object]]:
        return "case,", [(c,) for c in self.cases() if c.errors]


@functools.cache
def _places() -> dict[int, int]:
    """Return a dict from the `id` of each case to its position in the list of all cases."""
    return {id(case): place for place, case in enumerate(all_cases())}


def _in_turn(case: OpCase, takes: Sequence[DType]) -> list[DType]:
    """Return a list with one of the dtypes `takes`, chosen by the case's position; [] for none."""
    return [takes[_places()[id(case)] % len(takes)]] if takes else []


def _first(takes: Sequence[DType]) -> list[DType]:
    """Return the one dtype of `takes` that a quick run tests, in a list: float32 if possible."""
    return [float32] if float32 in takes else list(takes[:1])


def over(
    which: Callable[[Session], tuple[str, Sequence[object]]],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test once for each parameter set.

    `which(session)` returns (comma-separated parameter names, list of tuples of their values).
    """

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        test.conformance_parameters = which  # type: ignore[attr-defined]
        return test

    return mark


def _gaps(backend: Backend, attribute: str) -> Mapping[str, str]:
    found = getattr(backend, attribute, None) or {}
    if not isinstance(found, Mapping):
        raise TypeError(
            f"{backend.name}: {attribute} is {type(found).__name__}; "
            f"wanted a mapping from pattern to reason"
        )
    return found
