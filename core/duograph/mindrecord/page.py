"""`MindPage`, which reads the rows of MindRecord files by group and page; for user code.

A group holds the rows with one value of a chosen field.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any, cast

from ..call_errors import explaining
from ..errors import ArgumentError
from .format import FAILED, SUCCESS, MindRecordError
from .reader import RecordFiles

__all__ = ["MindPage"]


@explaining
class MindPage:
    """Reads pages of rows that have one value of a field (`mindspore.mindrecord.MindPage`).

    Args:
        file_name: the path of one shard, which stands for all shards of the file, or a list of
            paths.
        num_consumer: checked and ignored; rows are read in the calling thread.

    Raises:
        ValueError: a file cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph.mindrecord import FileWriter, MindPage
        >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "rows.mindrecord")
        >>> writer = FileWriter(path)
        >>> writer.add_schema({"label": {"type": "int32"}})
        >>> _ = writer.write_raw_data([{"label": i % 2} for i in range(5)]), writer.commit()
        >>> page = MindPage(path)
        >>> page.category_field = "label"
        >>> len(page.read_at_page_by_name("0", 0, 2))
        2
    """

    def __init__(self, file_name: str | Sequence[str], num_consumer: int = 4) -> None:
        names: list[str] = (
            list(file_name) if isinstance(file_name, (list, tuple)) else [cast("str", file_name)]
        )
        if isinstance(num_consumer, bool) or not isinstance(num_consumer, int) or num_consumer < 1:
            raise MindRecordError(f"MindPage: got num_consumer={num_consumer!r}; wanted >= 1")
        self._files = RecordFiles([pathlib.Path(n) for n in names], None)
        self._field = ""
        self._groups: dict[Any, list[int]] = {}

    @property
    def candidate_fields(self) -> list[str]:
        """The names of the fields whose values can group the rows."""
        return self.get_category_fields()

    @property
    def category_field(self) -> str:
        """The name of the field whose values group the rows."""
        return self._field

    @category_field.setter
    def category_field(self, category_field: str) -> None:
        if self.set_category_field(category_field) == FAILED:
            raise MindRecordError(
                f"MindPage: got {category_field!r}; wanted one of {self.candidate_fields}"
            )

    def get_category_fields(self) -> list[str]:
        """Return the names of the fields whose values can group the rows."""
        return [n for n in self._files.fields if n not in self._files.blobs]

    def set_category_field(self, category_field: str) -> str:
        """Set the field whose values group the rows.

        Return the string "SUCCESS", or "FAILED" if the field does not exist or cannot group rows.
        """
        if category_field not in self.candidate_fields:
            return FAILED
        self._field, self._groups = category_field, {}
        for i in range(len(self._files)):
            self._groups.setdefault(self._files.row(i)[category_field], []).append(i)
        return SUCCESS

    def read_category_info(self) -> str:
        """Return the groups as JSON: the number (id), value (name) and number of rows of each."""
        return json.dumps({
            "key": self._field,
            "categories": [{"count": len(self._groups[v]), "id": i, "name": str(v)}
                           for i, v in enumerate(sorted(self._groups))],
        })  # fmt: skip

    def read_at_page_by_id(
        self, category_id: int, page: int, num_row: int
    ) -> list[dict[str, object]]:
        """Return page number `page`, of `num_row` rows, of the group with the number `category_id`.

        Pages and groups are numbered from 0, groups by sorted value. The last page of a group may
        be shorter; a page after it is empty.

        Raises:
            ValueError: there is no such group, `page` is below 0, or `num_row` is below 1.
        """
        values = sorted(self._groups)
        if not isinstance(category_id, int) or not 0 <= category_id < len(values):
            raise MindRecordError(f"MindPage: got category_id={category_id!r}; it has "
                                  f"{len(values)} groups")  # fmt: skip
        return self._page(values[category_id], page, num_row)

    def read_at_page_by_name(
        self, category_name: str, page: int, num_row: int
    ) -> list[dict[str, object]]:
        """Return page number `page`, of `num_row` rows, of the group with value `category_name`.

        The name is the value as text. Pages are numbered from 0. The last page of a group may be
        shorter; a page after it is empty.

        Raises:
            ValueError: there is no such group, `page` is below 0, or `num_row` is below 1.
        """
        if not isinstance(category_name, str):
            raise ArgumentError(f"MindPage: got category_name={category_name!r}; wanted a str")
        for value in self._groups:
            if str(value) == category_name:
                return self._page(value, page, num_row)
        raise MindRecordError(f"MindPage: got {category_name!r}; there is no such group")

    def _page(self, value: object, page: int, num_row: int) -> list[dict[str, object]]:
        """Return page number `page`, from 0, of `num_row` rows, of the group with a given value.

        The last page of a group may be shorter; a page after it is empty.

        Raises:
            MindRecordError: `page` is below 0, or `num_row` is below 1.
        """
        if page < 0 or num_row < 1:
            raise MindRecordError(f"MindPage: got page={page}, num_row={num_row}; wanted 0, 1")
        return [self._files.row(i)
                for i in self._groups[value][page * num_row : (page + 1) * num_row]]  # fmt: skip
