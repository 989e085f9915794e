"""Schemas, which name the columns of a source and give their dtypes and shapes.

Users create a `Schema`; GeneratorDataset, RandomDataset and TFRecordDataset read it.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from ..dtype import DType, DTypeLike, as_dtype
from ..errors import ArgumentError, ArgumentValueError
from .rows import DAMAGE

__all__ = ["Schema"]

if TYPE_CHECKING:

    class SchemaColumn(TypedDict, total=False):
        """A column as a schema describes it, in the form of schema files."""

        name: str
        type: str
        shape: list[int]
        rank: int


SchemaLike: TypeAlias = "Schema | str | os.PathLike[str] | None"  # or the path of its file


class Schema:
    """Names, dtypes and shapes of the columns of a source (`mindspore.dataset.Schema`).

    Args:
        schema_file: a JSON file with ``{"columns": {name: {"type": ..., "shape": ...}}}``.

    Raises:
        ValueError: the file does not exist, or holds something else.

    Examples:
        >>> import duograph as ms
        >>> from duograph import dataset
        >>> schema = dataset.Schema()
        >>> schema.add_column("label", ms.int64, [2])
        >>> [row["label"].shape for row in dataset.RandomDataset(1, schema).create_dict_iterator()]
        [(2,)]
    """

    def __init__(self, schema_file: str | os.PathLike[str] | None = None) -> None:
        self.dataset_type = ""
        self.num_rows = 0
        self.columns: list[SchemaColumn] = []
        if schema_file is not None:
            try:
                self.from_json(json.loads(pathlib.Path(schema_file).read_text(encoding="utf-8")))
            except (OSError, *DAMAGE) as error:
                raise ArgumentValueError(f"Schema: cannot read {schema_file!s} ({error})") from None

    def add_column(
        self, name: str, de_type: DTypeLike | str, shape: Sequence[int] | None = None
    ) -> None:
        """Add a column to the schema.

        Args:
            name: name of the column.
            de_type: dtype of the column, or ``"string"``.
            shape: shape of the column; -1 stands for any size. None allows any shape.

        Raises:
            TypeError: the name is no string, `de_type` is no dtype, or the shape is no list or
                tuple.
            ValueError: the schema has a column of this name.
        """
        if not isinstance(name, str):
            raise ArgumentError(f"Schema: got the name {name!r}; wanted a str")
        if any(c["name"] == name for c in self.columns):
            raise ArgumentValueError(f"Schema: got the column {name!r} twice")
        column: SchemaColumn = {"name": name, "type": _type_name(de_type)}
        if shape is not None:
            if not isinstance(shape, (list, tuple)):
                raise ArgumentError(f"Schema: got shape={shape!r}; wanted a list or tuple of ints")
            for n in shape:
                if isinstance(n, bool) or not isinstance(n, int) or n < -1:
                    raise ArgumentValueError(f"Schema: got shape={list(shape)}; wanted ints")
            column["shape"] = list(shape)
            column["rank"] = len(column["shape"])
        self.columns.append(column)

    def parse_columns(self, columns: object) -> None:
        """Add columns from a list of dictionaries, or from a dictionary of dictionaries by name.

        A column of the same name is replaced.

        Raises:
            ValueError: a column has no name or no type.
            TypeError: `columns` is neither a list nor a dictionary.
        """
        if isinstance(columns, dict):
            several = [{"name": k, **v} if isinstance(v, dict) else v for k, v in columns.items()]
        elif isinstance(columns, list):
            several = columns
        else:
            raise ArgumentError(f"Schema: got {type(columns).__name__}; wanted a list or dict")
        for c in several:
            if not isinstance(c, dict) or "type" not in c or "name" not in c:
                raise ArgumentValueError(f"Schema: got the column {c!r}; wanted name and type")
            self.columns = [known for known in self.columns if known["name"] != c["name"]]
            self.add_column(c["name"], c["type"], c.get("shape"))

    def to_json(self) -> str:
        """Return the schema as JSON text, in the form of schema files."""
        found: dict[str, Any] = {"columns": {}}
        if self.dataset_type:
            found["datasetType"] = self.dataset_type
        if self.num_rows:
            found["numRows"] = self.num_rows
        for c in self.columns:
            found["columns"][c["name"]] = {k: v for k, v in c.items() if k != "name"}
        return json.dumps(found, indent=2)

    def from_json(self, json_obj: object) -> None:
        """Set the schema from a dictionary that has the form of a schema file.

        Raises:
            ValueError: the dictionary has another form.
            TypeError: `json_obj` is no dictionary.
        """
        if not isinstance(json_obj, dict):
            raise ArgumentError(f"Schema: got {type(json_obj).__name__}; wanted a dictionary")
        for key, value in json_obj.items():
            if key == "datasetType":
                self.dataset_type = str(value)
            elif key == "numRows":
                if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                    raise ArgumentValueError(
                        f"Schema: got numRows={value!r}; wanted a whole number of at least 0"
                    )
                self.num_rows = value
            elif key == "columns":
                self.columns = []
                self.parse_columns(value)
            else:
                raise ArgumentValueError(f"Schema: got {key!r}; wanted columns, numRows or "
                                         "datasetType")  # fmt: skip
        if not self.columns:
            raise ArgumentValueError("Schema: got no columns; wanted at least one")

    def get_num_rows(self) -> int:
        """Return the number of rows that the schema states, or 0."""
        return self.num_rows

    def dtypes(self) -> list[DType | None]:
        """Return the dtype of each column; None stands for strings."""
        return [
            None if c["type"] in ("string", "bytes") else as_dtype(c["type"]) for c in self.columns
        ]

    def __str__(self) -> str:
        return self.to_json()


def _type_name(value: DTypeLike | str) -> str:
    """Return the name of a dtype in schema files, such as "int32", "string" or "bytes"."""
    if value in (str, bytes) or value in ("string", "bytes"):
        return "bytes" if value in (bytes, "bytes") else "string"
    return as_dtype(value).name


def schema_of(value: object) -> Schema | None:
    """Return a Schema, given as a Schema or as the path of a schema file; return None for None.

    Raises:
        ArgumentError: the value is something else.
    """
    if value is None or isinstance(value, Schema):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Schema(value)
    raise ArgumentError(f"schema: got {type(value).__name__}; wanted a Schema or a path")
