"""Configuration of the documentation site, which `make docs` builds with Sphinx."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import duograph  # noqa: E402
import reference  # noqa: E402
import reference_html  # noqa: E402

project = "duograph"
author = "The duograph developers"
release = version = duograph.__version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", ".jupyter_cache", "jupyter_execute", "**.ipynb_checkpoints"]

# The whole site is made of local files: it needs no network, neither while it is built nor later.
copyright = "the duograph developers"
highlight_language = "text"

html_theme = "furo"
html_title = f"duograph {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False

# ---- the pages -----------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["myst.header"]


def setup(app: Any) -> dict[str, bool]:
    """Write the pages of the reference before Sphinx reads its sources."""
    app.add_directive("module-reference", reference_html.ModuleReference)
    app.connect("builder-inited", _write_reference)
    app.connect("source-read", _link_other_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_reference(app: Any) -> None:
    del app
    reference.write_pages(HERE / "api")


def _link_other_files(app: Any, page: str, source: list[str]) -> None:
    """Let links to files of the repository's root lead to the pages that include them."""
    del app, page
    for file, target in (("CONTRIBUTING", "contributing"), ("CHANGELOG", "changelog")):
        source[0] = source[0].replace(f"](../{file}.md", f"]({target}.md")
