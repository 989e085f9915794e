"""Judgement of a docstring example: its output in duograph compared with its output in MindSpore.

`run.py` calls `judge`. Numbers may differ by rounding, white space does not count, and for random
numbers only the form must agree. A class is identified by its name without its module. Where
MindSpore prints an address, such as ``<mindspore.common.generator.Generator object at 0x7f>``, any
text of an object of that class agrees. The sign of a singular vector is arbitrary.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

Statement = dict[str, str]

# A number, NaN or infinity, that is no part of a name; an imaginary part has its sign.
NUMBER = re.compile(
    r"(?:(?<![\w.])[-+]?|(?<=[\d.])[-+](?=[\d.]+(?:e[-+]?\d+)?j))(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf)j?(?!\w)",
    re.IGNORECASE,
)
# Sources whose results are random, or depend on time.
RANDOM = re.compile(
    r"seed|rand|dropout|Dropout|normal|Normal|uniform|Uniform|initializer|gamma|poisson|multinomial"
    r"|shuffle|Shuffle|Sampler|sampler|bernoulli|time|nn\.|empty|laplace|Laplace|Random|mint\.nn\."
)
# Sources whose results are one of several correct answers, which differ in signs.
SIGNS = re.compile(r"\b[Ss]vd\b")
PASSED, SHAPE, FAILED, BOTH = "pass", "pass in form", "fail", "fails there too"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of an example, and the reason if it failed."""

    result: str
    reason: str = ""
    detail: str = ""


def normal(text: str) -> str:
    """Normalise printed text: white space, module names, addresses and trailing zeros."""
    text = re.sub(r"duograph", "mindspore", text)
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"<class '\1'>", text)
    text = re.sub(r"<(?:\w+\.)*(\w+) object at 0x[0-9a-f]+>", r"<a \1>", text)
    text = re.sub(r"0x[0-9a-f]+", "<address>", text)
    text = re.sub(r"\s+", " ", text.strip())
    text = re.sub(r"(?<=[\[(,=]) | (?=[\]),])", "", text)
    text = re.sub(r" +(?=[-+][\d.]+(?:e[-+]?\d+)?j)", "", text)  # NumPy 2 pads imaginary parts
    return re.sub(r"(?<=\d\.)0+(?=\D|$)|(?<=\.\d)0+(?=\D|$)", "", text)


def masked(text: str) -> str:
    """Replace every number of a text, to compare only its form."""
    return NUMBER.sub("#", normal(text))


def close(a: str, b: str, signs: bool = True) -> bool:
    """Return whether text `a` equals `b` up to rounding and, without `signs`, signs."""
    x, y = normal(a), normal(b)
    for name in set(re.findall(r"<a (\w+)>", y)):
        x = re.sub(rf"\b{name}\((?:[^()]|\([^()]*\))*\)", f"<a {name}>", x)
    if x == y:
        return True
    if NUMBER.sub("#", x) != NUMBER.sub("#", y):
        return False
    numbers = ([_value(n) for n in NUMBER.findall(text)] for text in (x, y))
    pairs = zip(*numbers, strict=True)
    return all(_near(p, q) or (not signs and _near(-p, q)) for p, q in pairs)


def _value(text: str) -> float:
    return float(text.rstrip("jJ"))


def _near(p: float, q: float) -> bool:
    if math.isnan(p) or math.isnan(q):
        return math.isnan(p) and math.isnan(q)
    return math.isclose(p, q, rel_tol=2e-3, abs_tol=1e-5)


def reason_of(error: str) -> str:
    """Return a short description of an error for grouping: its type, and what is missing."""
    kind, _, text = error.partition(": ")
    for pattern in (
        r"has no attribute '(\w+)'",
        r"cannot import name '(\w+)'",
        r"No module named '([\w.]+)'",
        r"unexpected keyword argument '(\w+)'",
        r"missing \d+ required positional argument",
    ):
        found = re.search(pattern, text)
        if found:
            return f"{kind}: {found.group(0)}"
    short = re.sub(r"\([^()]*\)|\d+", "..", text)
    return f"{kind}: {short[:70]}"


def judge(ours: Sequence[Statement] | None, theirs: Sequence[Statement] | None) -> Verdict:
    """Compare the runs of an example in duograph and in MindSpore; None is a process that ended."""
    broken = theirs is None or any(s["error"] for s in theirs)
    if ours is None:
        return Verdict(BOTH if broken else FAILED, "the process ended or took too long")
    random = any(RANDOM.search(s["source"]) for s in ours)
    signs = not any(SIGNS.search(s["source"]) for s in ours)
    in_form = False
    for k, mine in enumerate(ours):
        printed_there = None
        if theirs is not None and k < len(theirs) and not theirs[k]["error"]:
            printed_there = theirs[k]["got"]
        if mine["error"]:
            if broken:  # perhaps at a later statement
                return Verdict(BOTH, reason_of(mine["error"]), mine["error"])
            return Verdict(FAILED, reason_of(mine["error"]), f"{mine['source']}{mine['error']}")
        wanted = [t for t in (printed_there, mine["want"]) if t is not None]
        if any(close(mine["got"], w, signs) for w in wanted):
            continue
        if printed_there is None and not mine["want"]:
            continue
        # MindSpore itself prints other numbers than its documentation
        unstable = printed_there is not None and not close(printed_there, mine["want"])
        if (random or unstable) and any(masked(mine["got"]) == masked(w) for w in wanted):
            in_form = True
            continue
        if printed_there is None and broken:
            return Verdict(BOTH, "prints something else than documented", _shown(mine, None))
        return Verdict(FAILED, "prints something else", _shown(mine, printed_there))
    return Verdict(SHAPE if in_form else PASSED)


def _shown(mine: Statement, theirs: str | None) -> str:
    wanted = mine["want"] if theirs is None else theirs
    return f"{mine['source'].strip()}\n--- wanted\n{wanted.strip()}\n--- got\n{mine['got'].strip()}"
