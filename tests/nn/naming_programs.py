"""Networks that nest Cells, containers and Parameters in every order of construction.

Each program takes a framework (`mindspore` or this package) and returns a Cell. The test compares
the names of its Parameters with `naming_expected.py`, which the real MindSpore printed:
`PYTHONPATH=tests python -m nn.naming_programs mindspore > tests/nn/naming_expected.py`. The
programs must use nothing but the framework that they are given.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from typing import Any

import nn.naming_containers  # noqa: F401  (adds its programs to the table)
from nn.naming_base import PROGRAMS, block, dense, parameter, program

__all__ = ["PROGRAMS", "names_of"]


@program
def cell_in_cell(ms: Any) -> Any:
    return block(ms, a=block(ms, b=block(ms, fc=dense(ms))))


@program
def child_added_to_a_child_that_is_set(ms: Any) -> Any:
    outer, inner = ms.nn.Cell(), ms.nn.Cell()
    outer.inner = inner
    inner.fc = dense(ms)
    return outer


@program
def three_levels_from_the_outside(ms: Any) -> Any:
    a, b, c = ms.nn.Cell(), ms.nn.Cell(), ms.nn.Cell()
    a.b = b
    b.c = c
    c.fc = dense(ms)
    a.last = dense(ms)
    return a


@program
def parameter_without_a_name(ms: Any) -> Any:
    return block(ms, inner=block(ms, w=parameter(ms)))


@program
def parameter_with_a_name(ms: Any) -> Any:
    made = block(ms, w=parameter(ms, "other"), v=parameter(ms))
    return block(ms, inner=made)


@program
def parameter_with_a_name_at_the_top(ms: Any) -> Any:
    return block(ms, w=parameter(ms, "other"), v=parameter(ms))


@program
def parameter_set_after_the_cell(ms: Any) -> Any:
    outer, inner = ms.nn.Cell(), ms.nn.Cell()
    outer.inner = inner
    inner.w = parameter(ms)
    inner.v = parameter(ms, "v.x")
    return outer


@program
def one_parameter_in_two_cells(ms: Any) -> Any:
    w = parameter(ms)
    return block(ms, a=block(ms, w=w), b=block(ms, v=w), c=dense(ms))


@program
def one_layer_in_two_places(ms: Any) -> Any:
    fc = dense(ms)
    return block(ms, a=fc, b=fc, c=block(ms, d=fc))


@program
def one_layer_in_a_list_and_outside(ms: Any) -> Any:
    fc = dense(ms)
    return block(ms, layers=ms.nn.CellList([fc, dense(ms)]), head=fc)


@program
def one_layer_outside_and_in_a_list(ms: Any) -> Any:
    fc = dense(ms)
    return block(ms, head=fc, layers=ms.nn.CellList([dense(ms), fc]))


@program
def child_replaced(ms: Any) -> Any:
    made = block(ms, a=dense(ms), b=dense(ms))
    made.a = block(ms, fc=dense(ms))
    return block(ms, net=made)


@program
def tied_weight(ms: Any) -> Any:
    made = block(ms, embedding=ms.nn.Embedding(2, 1), head=ms.nn.Dense(1, 2, has_bias=False))
    made.head.weight = made.embedding.embedding_table
    return made


@program
def tied_weight_in_a_child(ms: Any) -> Any:
    made = block(ms, embedding=ms.nn.Embedding(2, 1), head=ms.nn.Dense(1, 2, has_bias=False))
    made.head.weight = made.embedding.embedding_table
    return block(ms, net=made)


@program
def cell_without_prefix(ms: Any) -> Any:
    made = ms.nn.Cell(auto_prefix=False)
    made.a = block(ms, fc=dense(ms))
    made.w = parameter(ms)
    return made


@program
def cell_without_prefix_in_a_cell(ms: Any) -> Any:
    made = ms.nn.Cell(auto_prefix=False)
    made.a = block(ms, fc=dense(ms))
    return block(ms, net=made)


@program
def cell_in_a_cell_without_prefix(ms: Any) -> Any:
    made = ms.nn.Cell(auto_prefix=False)
    made.net = block(ms, a=dense(ms))
    made.net.b = dense(ms)
    return made


@program
def inserted_child(ms: Any) -> Any:
    made = ms.nn.Cell()
    made.insert_child_to_cell("fc", dense(ms))
    return made


@program
def inserted_child_in_a_cell(ms: Any) -> Any:
    made = ms.nn.Cell()
    made.insert_child_to_cell("fc", block(ms, d=dense(ms)))
    return block(ms, net=made)


@program
def inserted_parameter(ms: Any) -> Any:
    made = ms.nn.Cell()
    made.insert_param_to_cell("w", parameter(ms))
    made.insert_param_to_cell("v", parameter(ms, "u"))
    return made


@program
def parameter_tuple(ms: Any) -> Any:
    made = ms.nn.Cell()
    made.ws = ms.ParameterTuple((parameter(ms, "a"), parameter(ms, "b")))
    return made


@program
def parameter_tuple_in_a_cell(ms: Any) -> Any:
    made = ms.nn.Cell()
    made.ws = ms.ParameterTuple((parameter(ms, "a"), parameter(ms, "b")))
    return block(ms, net=made)


@program
def parameter_tuple_of_its_own_parameters(ms: Any) -> Any:
    made = block(ms, fc=dense(ms), w=parameter(ms))
    made.ws = ms.ParameterTuple(made.trainable_params())
    return block(ms, net=made)


@program
def update_names(ms: Any) -> Any:
    made = block(ms, fc=dense(ms), w=parameter(ms, "own"))
    made.update_parameters_name("x.")
    return made


@program
def update_names_without_dot(ms: Any) -> Any:
    made = block(ms, fc=dense(ms))
    made.update_parameters_name("teacher_")
    return made


@program
def update_names_of_itself_alone(ms: Any) -> Any:
    made = block(ms, fc=dense(ms), w=parameter(ms, "own"))
    made.update_parameters_name("x.", recurse=False)
    return made


@program
def update_names_with_nothing(ms: Any) -> Any:
    made = block(ms, fc=dense(ms), w=parameter(ms, "own"))
    made.update_parameters_name("")
    return made


@program
def update_names_then_set(ms: Any) -> Any:
    made = block(ms, fc=dense(ms))
    made.update_parameters_name("x.")
    return block(ms, net=made)


@program
def update_names_then_append(ms: Any) -> Any:
    made = ms.nn.CellList([dense(ms)])
    made.update_parameters_name("x.")
    made.append(dense(ms))
    return made


@program
def with_loss(ms: Any) -> Any:
    return ms.nn.WithLossCell(block(ms, fc=dense(ms)), ms.nn.MSELoss())


@program
def with_loss_then_added(ms: Any) -> Any:
    net = block(ms, fc=dense(ms))
    made = ms.nn.WithLossCell(net, ms.nn.MSELoss())
    net.late = dense(ms)
    return made


@program
def with_loss_that_has_weights(ms: Any) -> Any:
    return ms.nn.WithLossCell(block(ms, fc=dense(ms)), block(ms, w=parameter(ms)))


@program
def train_one_step(ms: Any) -> Any:
    net = ms.nn.WithLossCell(block(ms, fc=dense(ms)), ms.nn.MSELoss())
    return ms.nn.TrainOneStepCell(net, ms.nn.Momentum(net.trainable_params(), 0.1, 0.9))


@program
def train_one_step_adam(ms: Any) -> Any:
    net = block(ms, fc=dense(ms))
    return ms.nn.TrainOneStepCell(net, ms.nn.Adam(net.trainable_params(), 0.1))


@program
def train_with_loss_scale(ms: Any) -> Any:
    net = block(ms, fc=dense(ms))
    manager = ms.nn.DynamicLossScaleUpdateCell(2, 2, 2)
    optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
    return ms.nn.TrainOneStepWithLossScaleCell(net, optimizer, manager)


@program
def optimizer_on_a_cell(ms: Any) -> Any:
    net = block(ms, fc=dense(ms))
    net.optimizer = ms.nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return net


@program
def lstm(ms: Any) -> Any:
    return block(ms, rnn=ms.nn.LSTM(1, 1, num_layers=2, bidirectional=True))


@program
def gru_cell(ms: Any) -> Any:
    return block(ms, rnn=ms.nn.GRUCell(1, 1))


@program
def batch_norm(ms: Any) -> Any:
    return block(ms, bn=ms.nn.BatchNorm2d(1), ln=ms.nn.LayerNorm((1,)), gn=ms.nn.GroupNorm(1, 1))


@program
def combined(ms: Any) -> Any:
    conv = ms.nn.Conv2dBnAct(1, 1, 1, has_bn=True, activation="prelu")
    return block(ms, conv=conv, fc=ms.nn.DenseBnAct(1, 1, has_bn=True, activation="relu"))


@program
def transformer(ms: Any) -> Any:
    layer = ms.nn.TransformerEncoderLayer(2, 1, 2)
    return block(ms, encoder=ms.nn.TransformerEncoder(layer, 2))


@program
def attention(ms: Any) -> Any:
    return block(
        ms,
        a=ms.nn.MultiheadAttention(2, 1),
        b=ms.nn.MultiheadAttention(2, 1, kdim=3, vdim=4, add_bias_kv=True),
    )


@program
def transformer_decoder(ms: Any) -> Any:
    layer = ms.nn.TransformerDecoderLayer(2, 1, 2)
    return block(ms, decoder=ms.nn.TransformerDecoder(layer, 2))


@program
def optimizers(ms: Any) -> Any:
    net = block(ms, fc=dense(ms))
    weights = net.trainable_params()
    kinds = {
        "adagrad": lambda: ms.nn.Adagrad(weights),
        "adam": lambda: ms.nn.Adam(weights),
        "adam_amsgrad": lambda: ms.nn.Adam(weights, use_amsgrad=True),
        "adam_nesterov": lambda: ms.nn.Adam(weights, use_nesterov=True, weight_decay=0.1),
        "adam_weight_decay": lambda: ms.nn.AdamWeightDecay(weights),
        "adamax": lambda: ms.nn.AdaMax(weights),
        "adadelta": lambda: ms.nn.Adadelta(weights),
        "adasum": lambda: ms.nn.ASGD(weights),
        "ftrl": lambda: ms.nn.FTRL(weights),
        "lamb": lambda: ms.nn.Lamb(weights, 0.1),
        "momentum": lambda: ms.nn.Momentum(weights, 0.1, 0.9),
        "rmsprop": lambda: ms.nn.RMSProp(weights),
        "rmsprop_centered": lambda: ms.nn.RMSProp(weights, centered=True),
        "rprop": lambda: ms.nn.Rprop(weights),
        "sgd": lambda: ms.nn.SGD(weights, 0.1, momentum=0.9),
        "groups": lambda: ms.nn.Momentum(
            [{"params": weights[:1], "lr": 0.1}, {"params": weights[1:]}], 0.1, 0.9
        ),
        "decay_groups": lambda: ms.nn.Momentum(
            [{"params": weights[:1], "weight_decay": 0.1}, {"params": weights[1:]}], 0.1, 0.9
        ),
        "rates": lambda: ms.nn.SGD(weights, [0.1, 0.2]),
        "schedule": lambda: ms.nn.SGD(weights, ms.nn.CosineDecayLR(0.1, 0.2, 3)),
    }
    return {name: build() for name, build in kinds.items()}


def names_of(made: Any) -> list[tuple[str, str]]:
    """Return (path, name) of the Parameters of a Cell, or (key, name) of those of several."""
    if not isinstance(made, dict):
        return [(path, p.name) for path, p in made.parameters_and_names()]
    return [
        (key, name) for key in made for name in sorted(p.name for p in made[key].get_parameters())
    ]


def main(framework: str) -> None:
    """Print the table of expected names, as a Python module."""
    ms = importlib.import_module(framework)
    print('"""Names of Parameters that MindSpore 2.10 printed for `naming_programs.py`."""\n')
    print("# program -> (path, name) of each Parameter, or the name of the error")
    print("# fmt: off")
    print("EXPECTED: dict[str, list[tuple[str, str]] | str] = {")
    for name, build in PROGRAMS.items():
        try:
            found: object = names_of(build(ms))
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, RuntimeError) as error:
            found = type(error).__name__
            print(name, error, file=sys.stderr)
        if isinstance(found, list):  # lines of less than 100 columns
            lines = textwrap.wrap(", ".join(map(repr, found)), 92, break_long_words=False)
            print(f"    {name!r}: [", *(f"        {line}" for line in lines), "    ],", sep="\n")
        else:
            print(f"    {name!r}: {found!r},")
    print("}")


if __name__ == "__main__":
    main(sys.argv[1])
