"""The `duograph new-backend NAME` command: creates a plugin package for a new device.

`cli.main` runs it. The package is a copy of `cli/template` under another name; it passes the
conformance suite.
"""

from __future__ import annotations

import argparse
import ast
import importlib.resources
import importlib.util
import keyword
import pathlib
import re
import sys

from ..backend import registry
from ..conformance.requirements import problem
from ..errors import ArgumentValueError
from ..status_line import status_line
from .command import CommandError, Commands, UsageError, command, print_json, run_to_end

# The conformance tests that `--install` runs.
FIRST_OP = "[add-float32]"

__all__ = ["add", "package_files", "write"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "new-backend",
        _run,
        "create a package for a new device",
        "duograph new-backend MyDevice --install\nduograph new-backend MyDevice plugins/mydevice",
        json=True,
    )
    made.add_argument("name", help="the device_target of the device, such as MyDevice")
    made.add_argument("folder", nargs="?", help="folder to create (default: duograph-<name>)")
    made.add_argument(
        "--install",
        action="store_true",
        help="install the package into this environment with pip, and test its first op",
    )


def _run(options: argparse.Namespace) -> int:
    missing = problem(parallel=False) if options.install else None
    if missing is not None:
        raise CommandError(f"--install: {missing}")
    _check_free(options.name)
    try:
        root = write(options.name, options.folder)
    except ValueError as error:
        raise UsageError(error) from None
    except FileExistsError as error:
        raise UsageError(f"{error.filename} exists already; name another folder") from None
    low = options.name.lower()
    if options.json:
        files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        print_json({"device": options.name, "folder": str(root), "files": files})
    else:
        sys.stdout.write(f"wrote {root}: the device is in duograph_{low}/backend.py\n")
    steps = [
        f"pip install --editable {root}",
        f"pytest --pyargs duograph.conformance --device {options.name} --quick",
    ]
    sys.stdout.flush()
    status = 0
    if options.install:
        done, status = _install(root, options.name, options.json)
        steps = steps[done:]
    if not options.json:
        sys.stdout.write("next:\n" + "".join(f"  {step}\n" for step in steps))
    return status


def _check_free(name: str) -> None:
    """Raise UsageError if an installed device or package has the name already."""
    for known in registry.entries():
        if known.lower() == name.lower():
            raise UsageError(f"there is a device {known} already; choose another name")
    package = f"duograph_{name.lower()}"
    if name.isalnum() and importlib.util.find_spec(package) is not None:
        raise UsageError(f"the package {package} is installed already; choose another name")


def _install(root: pathlib.Path, name: str, quiet: bool) -> tuple[bool, int]:
    """Install a new backend package with pip, then test one op of its device.

    Returns whether it is installed, and the exit status: 1 if the installation or a conformance
    test has failed.

    Args:
        root: folder of the package.
        name: name of the device.
        quiet: whether the tests print to standard error.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", str(root)]
    with status_line(f"installing {root} with pip"):
        if run_to_end(pip):
            return False, 1
    test = [sys.executable, "-m", "duograph.cli", "conformance", "run", name, "-k", FIRST_OP]
    return True, 1 if run_to_end(test, sys.stderr if quiet else None) else 0


PYPROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "duograph-template"
version = "0.1.0"
description = "The Template device of duograph"
requires-python = ">=3.10"
dependencies = ["duograph", "numpy"]

# duograph finds the device by this line; nothing in duograph itself is edited.
[project.entry-points.duograph]
template = "duograph_template"

[tool.setuptools]
packages = ["duograph_template"]
"""

README = """\
# duograph-template

The Template device of duograph.

```
pip install --editable .
duograph devices
pytest --pyargs duograph.conformance --device Template --quick
pytest --pyargs duograph.conformance --device Template --report results
```

The last command writes the matrix of results, `results/Template.html`, and every result as data,
`results/Template.json`.

`duograph_template/__init__.py` has the plugin's hook. `duograph_template/backend.py` has
the device: 30 kernels and copies to and from the host, which is all that a backend needs.
"""


def package_files(name: str = "Template") -> dict[str, str]:
    """Return the files of a new backend package for a device called `name`: path -> content.

    Raises:
        ValueError: the name does not consist of letters and digits, or the code uses it.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name):
        raise ArgumentValueError(
            f"got the name {name!r}; wanted letters and digits, a letter first"
        )
    root = importlib.resources.files(__package__).joinpath("template")
    low = name.lower()
    modules = {
        module: root.joinpath(module).read_text("utf-8") for module in ("__init__.py", "backend.py")
    }
    if keyword.iskeyword(name) or name in _names_in("\n".join(modules.values())):
        raise ArgumentValueError(
            f"got the name {name!r}, which Python or the package's code uses; choose another name"
        )
    files = {"pyproject.toml": PYPROJECT, "README.md": README}
    files |= {f"duograph_template/{module}": text for module, text in modules.items()}

    def named(text: str) -> str:
        return text.replace("Template", name).replace("template", low)

    return {named(path): named(text) for path, text in files.items()}


def _names_in(source: str) -> set[str]:
    """Return the names that Python source code reads or defines, except that of the template."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "name", "asname"):
            found.add(getattr(node, field, None))
    return {name for name in found if isinstance(name, str)} - {"Template"}


def write(name: str, folder: str | None = None) -> pathlib.Path:
    """Write a new backend package for a device called `name`; return the path of its folder.

    `folder` must not exist; None means ``duograph-<name>``, with the name in lower case.

    Raises:
        ValueError: the name does not consist of letters and digits, or the code uses it.
        FileExistsError: the folder exists.
    """
    files = package_files(name)
    root = pathlib.Path(folder or f"duograph-{name.lower()}")
    root.mkdir(parents=True)
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root
