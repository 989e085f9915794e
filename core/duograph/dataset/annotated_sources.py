"""Dataset sources of images with annotations: VOC, COCO, CelebA and manifests.

For users. Files may be malicious: every defect raises DatasetError with the path.
"""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentValueError
from .image_sources import IMAGES, ImageFiles, PathLike, checked_usage
from .rows import DAMAGE, Array, DatasetError, Row
from .source import SamplerLike, damaged, folder_of

__all__ = ["CelebADataset", "CocoDataset", "ManifestDataset", "VOCDataset"]


def _text(owner: str, path: pathlib.Path) -> str:
    """Return the content of a UTF-8 text file; `owner` is the source, for messages.

    Raises:
        DatasetError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(owner, path, error) from None


class VOCDataset(ImageFiles):
    """Images of Pascal VOC (`mindspore.dataset.VOCDataset`).

    Columns: image, uint8, the bytes of a file or (H, W, 3) with `decode`. The task Segmentation
    adds target, in the same form. Detection adds bbox, float32 (n, 4): left, top, width and height;
    label, uint32 (n, 1); difficult and truncate, uint32 (n, 1).

    Args:
        dataset_dir: folder with ``JPEGImages``, ``ImageSets``, and ``Annotations`` or
            ``SegmentationClass``.
        task: ``"Segmentation"`` or ``"Detection"``.
        usage: the name of a list in ``ImageSets``, such as ``"train"``.
        class_indexing: dictionary from class names to labels; by default the classes are numbered
            in alphabetical order.
        decode: decode the files to images.
        extra_metadata: add a column _meta-filename, str (), with the name of the file.
        decrypt: function from the path of an encrypted file to its content.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `task` is unknown.
        RuntimeError: a list or an annotation is missing or damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        task: str = "Segmentation",
        usage: str = "train",
        class_indexing: dict[str, int] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        decode: bool = False,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        extra_metadata: bool = False,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        if task not in ("Segmentation", "Detection"):
            raise ArgumentValueError(
                f"VOCDataset: got task={task!r}; wanted 'Segmentation' or 'Detection'"
            )
        if task == "Segmentation" and class_indexing is not None:
            raise ArgumentValueError("VOCDataset: got class_indexing, which is of Detection only")
        detects = task == "Detection"
        columns = ["bbox", "label", "difficult", "truncate"] if detects else ["target"]
        super().__init__(["image", *columns, *(["_meta-filename"] if extra_metadata else [])])
        folder = folder_of("VOCDataset", dataset_dir)
        lines = _text("VOCDataset", folder / "ImageSets" / ("Main" if detects else task)
                      / f"{usage}.txt").splitlines()  # fmt: skip
        self._names = [line.split()[0] for line in lines if line.strip()]
        self._folder, self._detects, self._meta = folder, detects, bool(extra_metadata)
        self._decode, self._decrypt = bool(decode), decrypt
        self._objects: dict[str, list[tuple[str, list[float], int, int]]] = {}
        if detects:
            self._objects = {name: self._annotation(name) for name in self._names}
            found = sorted({o[0] for several in self._objects.values() for o in several})
            self.class_indexing = class_indexing or {c: i for i, c in enumerate(found)}
            if class_indexing is not None:
                self._names = [n for n in self._names if self._known(n)]
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _known(self, name: str) -> list[tuple[str, list[float], int, int]]:
        """Return the annotated objects of image `name` whose class is in `class_indexing`."""
        return [o for o in self._objects[name] if o[0] in self.class_indexing]

    def _annotation(self, name: str) -> list[tuple[str, list[float], int, int]]:
        """Parse the XML file of an image; return (class, box, difficult, truncated) of each object.

        A box is [left, top, width, height].
        """
        path = self._folder / "Annotations" / f"{name}.xml"
        text = _text("VOCDataset", path)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities could expand without end
            raise damaged("VOCDataset", path, "it defines a document type")
        found = []
        try:
            for item in ElementTree.fromstring(text).iter("object"):
                box = item.find("bndbox")
                if box is None:
                    raise ValueError("an object has no box")
                left, top, right, bottom = (
                    float(box.findtext(side, "")) for side in ("xmin", "ymin", "xmax", "ymax")
                )
                difficult, truncated = (
                    int(item.findtext(key, "0")) for key in ("difficult", "truncated")
                )
                if not all(0 <= n < 1 << 32 for n in (difficult, truncated)):
                    raise ValueError(f"an object has the marks {difficult} and {truncated}")
                size = [left, top, right - left, bottom - top]
                found.append((item.findtext("name", ""), size, difficult, truncated))
        except (ElementTree.ParseError, *DAMAGE) as error:
            raise damaged("VOCDataset", path, error) from None
        return found

    def _count(self) -> int:
        return len(self._names)

    def _row(self, index: int) -> Row:
        name = self._names[index]
        image = self._image(self._folder / "JPEGImages" / f"{name}.jpg")
        meta = (np.array(name),) if self._meta else ()
        if not self._detects:
            return (image, self._image(self._folder / "SegmentationClass" / f"{name}.png"), *meta)
        objects = self._known(name)
        boxes = np.array([o[1] for o in objects], np.float32).reshape(-1, 4)
        labels = [self.class_indexing[o[0]] for o in objects]
        numbers = (labels, [o[2] for o in objects], [o[3] for o in objects])
        return (image, boxes, *[np.array(n, np.uint32).reshape(-1, 1) for n in numbers], *meta)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self.class_indexing) if self._detects else {}


_COCO = {
    "Detection": ["bbox", "category_id", "iscrowd"],
    "Stuff": ["segmentation", "iscrowd"],
    "Keypoint": ["keypoints", "num_keypoints"],
    "Captioning": ["captions"],
}


class CocoDataset(ImageFiles):
    """Images of COCO (`mindspore.dataset.CocoDataset`).

    Columns: image, uint8, the bytes of a file or (H, W, 3) with `decode`; then by task:
    Detection: bbox, float32 (n, 4), category_id and iscrowd, uint32 (n, 1). Stuff: segmentation,
    float32 (n, m), in which shorter rows are padded with -1, and iscrowd. Keypoint: keypoints,
    float32 (n, m), and num_keypoints, uint32 (n, 1). Captioning: captions, str (n, 1).

    Args:
        dataset_dir: folder of the images.
        annotation_file: the JSON file of annotations.
        task: ``"Detection"``, ``"Stuff"``, ``"Keypoint"`` or ``"Captioning"``.
        decode: decode the files to images.
        extra_metadata: add a column _meta-filename, str (), with the name of the file.
        decrypt: function from the path of an encrypted file to its content.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `task` is unknown.
        RuntimeError: the JSON file is missing or damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        annotation_file: PathLike,
        task: str = "Detection",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        decode: bool = False,
        sampler: SamplerLike = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        extra_metadata: bool = False,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        if task not in _COCO:
            raise ArgumentValueError(f"CocoDataset: got task={task!r}; wanted {list(_COCO)}")
        super().__init__(["image", *_COCO[task], *(["_meta-filename"] if extra_metadata else [])])
        self._folder, self._task = folder_of("CocoDataset", dataset_dir), task
        self._decode, self._decrypt, self._meta = bool(decode), decrypt, bool(extra_metadata)
        path = pathlib.Path(annotation_file)
        try:
            content = json.loads(_text("CocoDataset", path))
            names = {i["id"]: str(i["file_name"]) for i in content["images"]}
            groups: dict[object, list[dict[str, Any]]] = {}
            for annotation in content["annotations"]:
                groups.setdefault(annotation["image_id"], []).append(annotation)
            self._rows = [(names[i], self._annotations(several)) for i, several in groups.items()]
            self.class_indexing = {
                str(c["name"]): [int(c["id"])] for c in content.get("categories", [])
            }
        except DAMAGE as error:
            raise damaged("CocoDataset", path, repr(error)) from None
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def _annotations(self, several: Sequence[dict[str, Any]]) -> Row:
        """Convert the annotations of one image to the columns of the task that follow the image.

        Each column has one item per annotation.
        """

        def numbers(key: str, dtype: type[np.generic], width: int = 1) -> Array:
            return np.array([a[key] for a in several], dtype).reshape(-1, width)

        if self._task == "Detection":
            crowd = np.array([a.get("iscrowd", 0) for a in several], np.uint32)[:, None]
            return numbers("bbox", np.float32, 4), numbers("category_id", np.uint32), crowd
        if self._task == "Stuff":
            outlines = [[float(v) for part in a["segmentation"] for v in part] for a in several]
            made = np.full((len(outlines), max(map(len, outlines))), -1, np.float32)
            for row, outline in zip(made, outlines):
                row[: len(outline)] = outline
            return made, numbers("iscrowd", np.uint32)
        if self._task == "Keypoint":
            points = np.array([a["keypoints"] for a in several], np.float32)
            return points, numbers("num_keypoints", np.uint32)
        return (np.array([[str(a["caption"])] for a in several]),)

    def _count(self) -> int:
        return len(self._rows)

    def _row(self, index: int) -> Row:
        name, rest = self._rows[index]
        image = self._image(self._folder / pathlib.PurePath(name).name)
        return (image, *rest, *((np.array(pathlib.PurePath(name).stem),) if self._meta else ()))

    def get_class_indexing(self) -> dict[str, list[int]]:
        return dict(self.class_indexing)


class CelebADataset(ImageFiles):
    """Faces with 40 attributes (`mindspore.dataset.CelebADataset`).

    Columns: image, uint8, the bytes of a file or (H, W, 3) with `decode`; attr, uint32 (40,) of 0
    and 1.

    Args:
        dataset_dir: folder of the images with ``list_attr_celeba.txt`` and, unless `usage` is
            ``"all"``, ``list_eval_partition.txt``.
        usage: ``"all"``, ``"train"``, ``"valid"`` or ``"test"``.
        decode: decode the files to images.
        extensions: suffixes of the files; by default those of common image formats.
        decrypt: function from the path of an encrypted file to its content.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: the folder does not exist, or `usage` is unknown.
        RuntimeError: a list is missing or damaged.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        usage: str = "all",
        sampler: SamplerLike = None,
        decode: bool = False,
        extensions: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        super().__init__(["image", "attr"])
        folder = folder_of("CelebADataset", dataset_dir)
        parts = ("all", "train", "valid", "test")
        usage = checked_usage("CelebADataset", usage, parts, "all")
        kept = None
        if usage != "all":
            lines = _text("CelebADataset", folder / "list_eval_partition.txt").splitlines()
            pairs = [line.split() for line in lines if line.strip()]
            kept = {p[0] for p in pairs if p[-1] == str(parts.index(usage) - 1)}
        path = folder / "list_attr_celeba.txt"
        endings = IMAGES if extensions is None else tuple(extensions)
        items = []
        for line in _text("CelebADataset", path).splitlines()[2:]:
            name, *values = line.split() or [""]
            if not name:
                continue
            if len(values) != 40 or not set(values) <= {"1", "-1"}:
                raise damaged("CelebADataset", path, f"got the line {line[:60]!r}")
            if (kept is None or name in kept) and name.lower().endswith(endings):
                image = folder / pathlib.PurePath(name).name
                items.append((image, np.array([v == "1" for v in values], np.uint32)))
        if not items:
            raise DatasetError(f"CelebADataset: {path} lists no images of usage {usage!r}")
        self._items = items
        self._decode, self._decrypt = bool(decode), decrypt
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )


class ManifestDataset(ImageFiles):
    """Images that a file of JSON lines lists (`mindspore.dataset.ManifestDataset`).

    Columns: image, uint8, the bytes of a file or (H, W, 3) with `decode`; label, int32 (), or (n,)
    if the image has several annotations.

    Args:
        dataset_file: file with a line such as ``{"source": path, "usage": "TRAIN", "annotation":
            [{"name": "cat"}]}`` for each image.
        usage: ``"train"``, ``"eval"`` or ``"inference"``.
        class_indexing: dictionary from names to labels; by default the names are numbered in
            alphabetical order.
        decode: decode the files to images.
        num_samples, shuffle, sampler, num_shards, shard_id, cache: see `MnistDataset`.

    Raises:
        ValueError: `usage` is unknown.
        RuntimeError: the file is missing or damaged, or lists no images.
    """

    def __init__(
        self,
        dataset_file: PathLike,
        usage: str = "train",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: SamplerLike = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        super().__init__(["image", "label"])
        path = pathlib.Path(dataset_file)
        usage = checked_usage("ManifestDataset", usage, ("train", "eval", "inference"), "train")
        found: list[tuple[pathlib.Path, list[str]]] = []
        for line in _text("ManifestDataset", path).splitlines():
            try:
                item: dict[str, Any] = json.loads(line) if line.strip() else {"usage": ""}
                if str(item["usage"]).lower() == usage:
                    names = [str(a["name"]) for a in item.get("annotation", [])]
                    found.append((path.parent / str(item["source"]), names))
            except DAMAGE as error:
                raise damaged("ManifestDataset", path, repr(error)) from None
        every = sorted({n for _, names in found for n in names})
        self.class_indexing = class_indexing or {c: i for i, c in enumerate(every)}
        self._items = [
            (image, np.array(labels[0] if len(labels) == 1 else labels, np.int32))
            for image, names in found
            if (labels := [self.class_indexing[n] for n in names if n in self.class_indexing])
            or not names
        ]
        if not self._items:
            raise DatasetError(f"ManifestDataset: {path} lists no images of usage {usage!r}")
        self._decode = bool(decode)
        self._setup(
            sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers, cache
        )

    def num_classes(self) -> int | None:
        return len(self.class_indexing)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self.class_indexing)
