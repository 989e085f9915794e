"""Record which Python functions of duograph a piece of code enters, in order.

`test_walk.py` compares the record with docs/walk.md. Run `python tests/project/walks.py` to print
the number of files and of moves between files for the first call of a compiled function.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import types
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = "core/duograph/"
FIRST_COMPILED_CALL = """
import duograph as ms
ms.set_context(device_target="CPU")
x, y = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([4.0, 5.0, 6.0])
ms.grad(lambda t: (t * t).sum())(x)
@ms.jit
def f(x, y):
    if x.sum() > 0:
        return x * y + x
    return x - y
# walk
f(x, y)
"""


@dataclasses.dataclass(frozen=True)
class Walk:
    """The functions that were entered: pairs of file and name, repeats included.

    A file of the core is named relative to `core/duograph`.
    """

    steps: list[tuple[str, str]]

    @property
    def files(self) -> int:
        return len({file for file, _ in self.steps})

    @property
    def visits(self) -> list[str]:
        """The files in the order of the calls, equal neighbours merged."""
        names = [file for file, _ in self.steps]
        return [b for a, b in zip([None, *names], names, strict=False) if a != b]

    @property
    def moves(self) -> int:
        """How often a call enters another file than the call before."""
        return len(self.visits) - 1

    @property
    def returns(self) -> int:
        """How many of the moves lead to the file that was left by the move before."""
        return sum(a == c for a, c in zip(self.visits, self.visits[2:], strict=False))


def record(function: Callable[[], object]) -> Walk:
    """Return the walk of one call of `function`."""
    codes: list[types.CodeType] = []

    def profile(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.append(frame.f_code)

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    steps = []
    for code in codes:
        path = pathlib.Path(code.co_filename)
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
            file = path.relative_to(ROOT).as_posix().removeprefix(CORE)
            steps.append((file, code.co_name))
    return Walk(steps)


def walk_of(source: str, file: str) -> Walk:
    """Run the lines before the comment `# walk`, then record the lines after it."""
    before, after = source.split("# walk\n")
    names: dict[str, object] = {"__name__": "walk"}
    exec(compile(before, file, "exec"), names)
    code = compile(after, file, "exec")
    return record(lambda: exec(code, names))


def main() -> None:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(FIRST_COMPILED_CALL)
        file.flush()
        walk = walk_of(FIRST_COMPILED_CALL, file.name)
    print(f"{walk.files} files, {walk.moves} moves, {walk.returns} of them back")


if __name__ == "__main__":
    main()
