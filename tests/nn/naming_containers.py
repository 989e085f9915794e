"""Naming programs with CellList, SequentialCell and CellDict; see `naming_programs`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from nn.naming_base import block, dense, program


@program
def sequential(ms: Any) -> Any:
    return ms.nn.SequentialCell(dense(ms), ms.nn.ReLU(), dense(ms))


@program
def sequential_of_a_list(ms: Any) -> Any:
    return ms.nn.SequentialCell([dense(ms), ms.nn.ReLU(), dense(ms)])


@program
def sequential_of_names(ms: Any) -> Any:
    return ms.nn.SequentialCell(OrderedDict(a=dense(ms), b=ms.nn.ReLU(), c=dense(ms)))


@program
def sequential_of_sequentials(ms: Any) -> Any:
    seq = ms.nn.SequentialCell
    return block(ms, body=seq(seq(dense(ms), dense(ms)), seq(ms.nn.ReLU(), dense(ms))))


@program
def sequential_of_names_in_a_cell(ms: Any) -> Any:
    seq = ms.nn.SequentialCell(OrderedDict(a=dense(ms), c=dense(ms)))
    return block(ms, body=seq)


@program
def sequential_appended_before(ms: Any) -> Any:
    seq = ms.nn.SequentialCell()
    seq.append(dense(ms))
    seq.append(block(ms, fc=dense(ms)))
    return block(ms, body=seq)


@program
def sequential_appended_when_empty_and_set(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell())
    made.body.append(dense(ms))
    made.body.append(block(ms, fc=dense(ms)))
    return made


@program
def sequential_appended_when_filled_and_set(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(dense(ms)))
    made.body.append(dense(ms))
    made.body.append(block(ms, fc=dense(ms)))
    return made


@program
def sequential_appended_when_filled_without_weights(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(ms.nn.ReLU()))
    made.body.append(dense(ms))
    made.body.append(dense(ms))
    return made


@program
def sequential_appended_two_levels_down(ms: Any) -> Any:
    made = block(ms, net=block(ms, body=ms.nn.SequentialCell(dense(ms))))
    made.net.body.append(dense(ms))
    return made


@program
def sequential_item_replaced(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(dense(ms), dense(ms)))
    made.body[1] = block(ms, fc=dense(ms))
    made.body[0] = dense(ms)
    return made


@program
def sequential_item_replaced_from_the_end(ms: Any) -> Any:
    made = ms.nn.SequentialCell(dense(ms), dense(ms))
    made[-1] = block(ms, fc=dense(ms))
    return made


@program
def sequential_item_deleted(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(dense(ms), block(ms, fc=dense(ms)), dense(ms)))
    del made.body[0]
    return made


@program
def sequential_items_deleted(ms: Any) -> Any:
    made = ms.nn.SequentialCell(*[dense(ms) for _ in range(5)])
    del made[1:3]
    return made


@program
def sequential_of_names_item_replaced(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(OrderedDict(a=dense(ms), c=dense(ms))))
    made.body[1] = block(ms, fc=dense(ms))
    return made


@program
def sequential_of_names_appended(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(OrderedDict(a=dense(ms), c=dense(ms))))
    made.body.append(dense(ms))
    return made


@program
def sequential_with_an_attribute(ms: Any) -> Any:
    made = ms.nn.SequentialCell(dense(ms))
    made.extra = dense(ms)
    made.append(dense(ms))
    return made


@program
def sequential_inserted_by_name(ms: Any) -> Any:
    made = ms.nn.SequentialCell(dense(ms))
    made.insert_child_to_cell("tail", dense(ms))
    return block(ms, body=made)


@program
def sequential_slice_of_it(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(dense(ms), dense(ms), dense(ms)))
    return made.body[1:]


@program
def sequential_slice_set(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(dense(ms), dense(ms), dense(ms)))
    return block(ms, part=made.body[1:])


@program
def list_before(ms: Any) -> Any:
    return block(ms, layers=ms.nn.CellList([dense(ms), dense(ms)]))


@program
def list_alone(ms: Any) -> Any:
    return ms.nn.CellList([dense(ms), ms.nn.ReLU(), block(ms, fc=dense(ms))])


@program
def list_appended_before(ms: Any) -> Any:
    layers = ms.nn.CellList()
    for _ in range(3):
        layers.append(block(ms, fc=dense(ms)))
    return block(ms, layers=layers)


@program
def list_appended_when_empty_and_set(ms: Any) -> Any:
    made = block(ms, transformers=ms.nn.CellList([]))
    for _ in range(3):
        made.transformers.append(block(ms, blocks=dense(ms)))
    return made


@program
def list_appended_when_filled_and_set(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms)]))
    made.layers.append(dense(ms))
    made.layers.append(block(ms, fc=dense(ms)))
    return made


@program
def list_appended_two_levels_down(ms: Any) -> Any:
    made = block(ms, net=block(ms, layers=ms.nn.CellList([dense(ms)])))
    made.net.layers.append(dense(ms))
    return made


@program
def list_extended_when_empty_and_set(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList())
    made.layers.extend([dense(ms), dense(ms)])
    return made


@program
def list_extended_when_filled_and_set(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms)]))
    made.layers.extend([dense(ms), dense(ms)])
    return made


@program
def list_inserted(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms), block(ms, fc=dense(ms))]))
    made.layers.insert(1, dense(ms))
    made.layers.insert(0, dense(ms))
    return made


@program
def list_inserted_alone(ms: Any) -> Any:
    made = ms.nn.CellList([dense(ms), block(ms, fc=dense(ms))])
    made.insert(1, block(ms, new=dense(ms)))
    return made


@program
def list_item_replaced(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms), dense(ms)]))
    made.layers[0] = block(ms, fc=dense(ms))
    return made


@program
def list_only_item_replaced(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms)]))
    made.layers[0] = block(ms, fc=dense(ms))
    return made


@program
def list_item_deleted(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms), block(ms, fc=dense(ms)), dense(ms)]))
    del made.layers[0]
    return made


@program
def list_slice(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([dense(ms), dense(ms), dense(ms)]))
    return made.layers[1:]


@program
def list_of_lists(ms: Any) -> Any:
    lists = ms.nn.CellList
    return block(ms, layers=lists([lists([dense(ms), dense(ms)]), lists([dense(ms)])]))


@program
def list_of_lists_from_the_outside(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList())
    for _ in range(2):
        inner = ms.nn.CellList()
        made.layers.append(inner)
        for _ in range(2):
            inner.append(dense(ms))
    return made


@program
def list_of_lists_filled_then_appended(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList())
    for _ in range(2):
        inner = ms.nn.CellList([dense(ms)])
        made.layers.append(inner)
        inner.append(dense(ms))
        inner.append(block(ms, fc=dense(ms)))
    return made


@program
def list_without_prefix(ms: Any) -> Any:
    layers = ms.nn.CellList([block(ms, a=dense(ms)), block(ms, b=dense(ms))], auto_prefix=False)
    return layers


@program
def list_without_prefix_appended(ms: Any) -> Any:
    layers = ms.nn.CellList([block(ms, a=dense(ms))], auto_prefix=False)
    layers.append(block(ms, b=dense(ms)))
    layers.extend([block(ms, c=dense(ms))])
    layers.insert(0, block(ms, d=dense(ms)))
    return layers


@program
def list_without_prefix_set(ms: Any) -> Any:
    layers = ms.nn.CellList([block(ms, a=dense(ms))], auto_prefix=False)
    made = block(ms, layers=layers)
    layers.append(block(ms, b=dense(ms)))
    return made


@program
def sequential_of_a_list_of_cells(ms: Any) -> Any:
    layers = [block(ms, fc=dense(ms)) for _ in range(2)]
    return block(ms, a=ms.nn.SequentialCell(*layers), b=ms.nn.SequentialCell(layers[:1]))


@program
def list_in_sequential(ms: Any) -> Any:
    inner = block(ms, layers=ms.nn.CellList([dense(ms)]))
    return ms.nn.SequentialCell(inner, dense(ms))


@program
def list_in_sequential_appended(ms: Any) -> Any:
    inner = block(ms, layers=ms.nn.CellList([dense(ms)]))
    made = block(ms, body=ms.nn.SequentialCell(inner, dense(ms)))
    inner.layers.append(dense(ms))
    return made


@program
def numbers_in_the_path(ms: Any) -> Any:
    layers = ms.nn.CellList([ms.nn.CellList([dense(ms), dense(ms)])])
    made = block(ms, layers=layers)
    layers[0].append(dense(ms))
    layers.append(dense(ms))
    return made


@program
def name_that_is_a_number_of_the_path(ms: Any) -> Any:
    inner = ms.nn.SequentialCell(dense(ms), dense(ms))
    made = ms.nn.CellList([block(ms, x=inner)])
    inner.append(dense(ms))
    return block(ms, y=made)


@program
def first_item_without_weights(ms: Any) -> Any:
    made = block(ms, body=ms.nn.SequentialCell(ms.nn.ReLU(), dense(ms)))
    made.body.append(dense(ms))
    return made


@program
def lists_in_a_list(ms: Any) -> Any:
    lists = ms.nn.CellList
    return lists([lists([dense(ms)]), lists([dense(ms)]), dense(ms)])


@program
def list_appended_to_a_list_of_one_list(ms: Any) -> Any:
    made = ms.nn.CellList([ms.nn.CellList([dense(ms)])])
    made.append(ms.nn.CellList([dense(ms)]))
    made.extend([dense(ms), dense(ms)])
    return made


@program
def list_inserted_into_a_list_of_one_list(ms: Any) -> Any:
    made = ms.nn.CellList([ms.nn.CellList([dense(ms)])])
    made.insert(0, ms.nn.CellList([dense(ms)]))
    made.insert(1, dense(ms))
    return made


@program
def list_extended_by_lists_when_set(ms: Any) -> Any:
    made = block(ms, layers=ms.nn.CellList([]))
    made.layers.extend([ms.nn.CellList([dense(ms)]), dense(ms), dense(ms)])
    return made


@program
def list_with_numbers_in_its_name(ms: Any) -> Any:
    made = ms.nn.CellList([ms.nn.CellList([dense(ms)]), ms.nn.CellList([dense(ms)])])
    made.update_parameters_name("x.0.")
    made.append(dense(ms))
    del made[0]
    return made


@program
def item_deleted_from_a_list_of_lists(ms: Any) -> Any:
    made = ms.nn.CellList([ms.nn.CellList([dense(ms)]), ms.nn.CellList([dense(ms)])])
    made = block(ms, layers=made)
    del made.layers[0]
    made.layers.append(dense(ms))
    return made


@program
def dictionary(ms: Any) -> Any:
    return ms.nn.CellDict({"fc": dense(ms), "act": ms.nn.ReLU()})


@program
def dictionary_in_a_cell(ms: Any) -> Any:
    return block(ms, parts=ms.nn.CellDict([["fc", dense(ms)], ["b", block(ms, fc=dense(ms))]]))


@program
def dictionary_filled_when_set(ms: Any) -> Any:
    made = block(ms, parts=ms.nn.CellDict())
    made.parts["fc"] = dense(ms)
    made.parts["b"] = block(ms, fc=dense(ms))
    return made


@program
def dictionary_with_one_more_when_set(ms: Any) -> Any:
    made = block(ms, parts=ms.nn.CellDict({"fc": dense(ms)}))
    made.parts["b"] = block(ms, fc=dense(ms))
    made.parts.update({"c": dense(ms)})
    return made


@program
def dictionary_item_replaced(ms: Any) -> Any:
    made = block(ms, parts=ms.nn.CellDict({"fc": dense(ms), "d": dense(ms)}))
    made.parts["fc"] = block(ms, new=dense(ms))
    return made


@program
def dictionary_without_prefix(ms: Any) -> Any:
    made = ms.nn.CellDict({"fc": block(ms, a=dense(ms))}, auto_prefix=False)
    made["b"] = block(ms, c=dense(ms))
    return made
