"""Every option that is accepted works, warns that it has no meaning here, or is refused.

The table of options lists what does not simply work. The first tests compare it with the sources,
so that no public callable takes an argument without using it; the others call every row.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import warnings
from typing import Any

import duograph as ms
import pytest
from duograph import context, option_checks
from duograph.errors import OptionWarning
from duograph.option_table import MOOT, OPTIONS, REFUSED, WORKS
from project.option_calls import CALLS, call_text, namespace, with_option
from project.option_scan import tree_of, unused

CORE = pathlib.Path(ms.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _fresh():
    before, recorded = dict(vars(context.settings)), dict(context._recorded)
    option_checks.forget_warnings()
    yield
    for key, value in before.items():
        setattr(context.settings, key, value)
    context._recorded.update(recorded)
    ms.reset_auto_parallel_context()
    ms.set_context(save_dump_path=".")  # a change of any setting drops what was compiled before


def ids(rows: list[tuple[str, str]]) -> list[str]:
    return [f"{owner}({name})" for owner, name in rows]


def rows_of(status: str) -> list[tuple[str, str]]:
    return [key for key, option in OPTIONS.items() if option.status == status]


# ---- the table and the sources ------------------------------------------------------------------


def test_every_unused_parameter_is_in_the_table() -> None:
    wholes = {owner for owner, name in OPTIONS if not name}
    missing = [
        f"{owner}({parameter}) at {place}"
        for (owner, parameter), place in unused().items()
        if (owner, parameter) not in OPTIONS
        and not any(owner == w or owner.startswith(w + ".") for w in wholes)
    ]
    assert missing == []


def checked_options() -> list[tuple[str, str]]:
    """Return (owner, option) of every call of `check_options` and `warn_moot` in the sources."""
    found = []
    for path in CORE.rglob("*.py"):
        text = path.read_text()
        if "check_options(" not in text and "warn_moot(" not in text:
            continue
        for node in ast.walk(tree_of(str(path))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name not in ("check_options", "warn_moot"):
                continue
            assert isinstance(node, ast.Call)
            (owner,) = node.args
            if isinstance(owner, ast.Constant):
                keys = [k.arg for k in node.keywords if k.arg] if name == "check_options" else [""]
                found += [(str(owner.value), key) for key in keys]
    return found


def test_every_check_is_of_an_option_in_the_table() -> None:
    assert [key for key in checked_options() if key not in OPTIONS] == []


def test_every_setting_is_in_the_table() -> None:
    assert set(vars(context.settings)) == {n for o, n in rows_of(WORKS) if o == "set_context"}


@pytest.mark.parametrize(("owner", "name"), list(OPTIONS), ids=ids(list(OPTIONS)))
def test_default_of_the_table_is_that_of_the_signature(owner: str, name: str) -> None:
    if owner in ("set_context", "set_auto_parallel_context"):
        if OPTIONS[owner, name].status == WORKS and owner == "set_context":
            assert getattr(context.Settings(), name) == OPTIONS[owner, name].default
        return  # the defaults of the others are read from the table
    thing: Any = ms
    for part in owner.split("."):
        thing = getattr(thing, part)
    parameters = inspect.signature(thing).parameters
    if name not in parameters:
        assert not name or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return
    parameter = parameters[name]
    if parameter.default is not parameter.empty:
        default = OPTIONS[owner, name].default
        assert parameter.default == default or str(parameter.default).lower() == default


# ---- every row, called --------------------------------------------------------------------------


def run(text: str, tmp_path: pathlib.Path) -> Any:
    return eval(text, namespace(tmp_path))


def outcome(text: str, tmp_path: pathlib.Path) -> tuple[list[str], Exception | None]:
    """Run a call; return the texts of its option warnings, and its error."""
    names = namespace(tmp_path)
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(text, names)
        except Exception as raised:  # noqa: BLE001 (the tests look at it)
            error = raised
    return [str(w.message) for w in caught if w.category is OptionWarning], error


@pytest.mark.parametrize(("owner", "name"), rows_of(MOOT), ids=ids(rows_of(MOOT)))
def test_option_without_meaning_warns_once_and_says_why(
    owner: str, name: str, tmp_path: pathlib.Path
) -> None:
    text = call_text(owner, name)
    (said,), error = outcome(text, tmp_path)
    assert said.startswith(f"{owner}: {name} has no" if name else f"{owner} has no")
    assert said.endswith(OPTIONS[owner, name].about)
    assert error is None or "nowhere" in str(error), error
    assert outcome(text, tmp_path)[0] == []


@pytest.mark.parametrize(("owner", "name"), rows_of(REFUSED), ids=ids(rows_of(REFUSED)))
def test_refused_option_raises_and_says_what_to_use(
    owner: str, name: str, tmp_path: pathlib.Path
) -> None:
    said, error = outcome(call_text(owner, name), tmp_path)
    assert isinstance(error, ValueError)
    assert str(error).endswith(f"{name}, which is not offered; {OPTIONS[owner, name].about}")
    assert said == []


SILENT = [key for key in OPTIONS if key[1] and OPTIONS[key].status != WORKS]


@pytest.mark.parametrize(("owner", "name"), SILENT, ids=ids(SILENT))
def test_default_of_an_option_says_nothing(owner: str, name: str, tmp_path: pathlib.Path) -> None:
    option = OPTIONS[owner, name]
    default = "ms.float32" if option.default == "float32" else repr(option.default)
    said, error = outcome(call_text(owner, name, default), tmp_path)
    assert said == []
    assert not isinstance(error, (TypeError, AttributeError)) or owner == "nn.GraphCell"


# Options that have an effect only with others: each alone, and with what it counts with.
ALONE = {
    ("CheckpointConfig", "save_checkpoint_seconds"): "save_checkpoint_steps=0",
    ("CheckpointConfig", "keep_checkpoint_per_n_minutes"): "keep_checkpoint_max=0",
    ("Model", "eval_indexes"): "eval_network=net",
    ("Model.train", "sink_size"): "dataset_sink_mode=True",
    ("Model.fit", "sink_size"): "dataset_sink_mode=True",
    ("data_sink", "input_signature"): "jit_config={}",
    ("load_checkpoint", "strict_load"): "net=net",
}


@pytest.mark.parametrize(("owner", "name"), list(ALONE), ids=ids(list(ALONE)))
def test_option_without_the_one_it_counts_with_warns(
    owner: str, name: str, tmp_path: pathlib.Path
) -> None:
    (said,), error = outcome(call_text(owner, name), tmp_path)
    assert said == f"{owner}: {name} has no effect here: it {OPTIONS[owner, name].about}"
    assert error is None
    option_checks.forget_warnings()
    both = f"{name}={OPTIONS[owner, name].value}, {ALONE[owner, name]}"
    said_now, error = outcome(with_option(CALLS[owner], both), tmp_path)
    assert not any(name in text for text in said_now)
    assert error is None


NEED_A_FILE = ("load_checkpoint", "load", "export", "save_checkpoint", "CheckpointConfig")
TESTED_BESIDE = {
    *ALONE,
    ("nn.Dropout", "keep_prob"),
    *[key for key in OPTIONS if key[0] in NEED_A_FILE and key[1].endswith(("key", "mode"))],
}
TAKEN = [key for key in rows_of(WORKS) if key[0] != "set_context" and key not in TESTED_BESIDE]


@pytest.mark.parametrize(("owner", "name"), TAKEN, ids=ids(TAKEN))
def test_option_that_works_is_taken_without_a_word(
    owner: str, name: str, tmp_path: pathlib.Path
) -> None:
    """What it does is tested beside the code; here, that the value of the table is accepted."""
    text = call_text(owner, name)
    if (owner, name) in (("jit", "function"), ("jit", "fn")):
        text = f"ms.jit({name}=identity)(x)"
    said, error = outcome(text, tmp_path)
    assert said == []
    assert error is None, error


SETTINGS = [key for key in rows_of(WORKS) if key[0] == "set_context"]


@pytest.mark.parametrize(("owner", "name"), SETTINGS, ids=ids(SETTINGS))
def test_setting_can_be_read_back(owner: str, name: str, tmp_path: pathlib.Path) -> None:
    before = ms.get_context(name)
    said, error = outcome(call_text(owner, name), tmp_path)
    assert (said, error) == ([], None)
    wanted = run(OPTIONS[owner, name].value, tmp_path)
    got = ms.get_context(name)
    assert got == wanted or got.jit_config_dict["jit_level"] == "O0"
    if name not in ("device_target", "device_id"):
        assert got != before


def test_every_callable_of_the_table_is_called() -> None:
    assert {owner for owner, _ in OPTIONS} == set(CALLS)


# ---- unknown options, warnings, the page --------------------------------------------------------

SWALLOWERS = (
    "set_context", "set_auto_parallel_context", "jit", "JitConfig", "nn.Cell.recompute", "nn.Adam",
    "dataset.Dataset.batch", "dataset.Dataset.map", "save_checkpoint", "CheckpointConfig", "export",
    "load", "Model", "build_train_network",
)  # fmt: skip


@pytest.mark.parametrize("owner", SWALLOWERS)
def test_unknown_option_is_an_error(owner: str, tmp_path: pathlib.Path) -> None:
    _, error = outcome(with_option(CALLS[owner], "colour=1"), tmp_path)
    assert isinstance(error, (TypeError, ValueError))
    assert "unknown option 'colour'" in str(error)


def test_options_of_one_reason_share_a_warning(tmp_path: pathlib.Path) -> None:
    said, _ = outcome(
        "ms.set_auto_parallel_context(enable_alltoall=True, comm_fusion={'a': 1})", tmp_path
    )
    assert len(said) == 1
    assert said[0].startswith("set_auto_parallel_context: enable_alltoall, comm_fusion have no")


def test_warning_names_the_line_of_the_user() -> None:
    with pytest.warns(OptionWarning) as caught:
        ms.nn.Dropout(p=0.5, dtype=ms.float16)
    assert caught[0].filename == __file__


def test_page_of_options_is_up_to_date() -> None:
    script = ROOT / "docs" / "build_options.py"
    spec = importlib.util.spec_from_file_location("build_options", script)
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    assert builder.PAGE.read_text() == builder.page(), f"run {script.name}"
