"""Distribution, the base class of distributions, with the rules that derive its functions.

Such a rule derives one function from another, as the probability from its logarithm. The classes in
`distribution/` derive from the base class and hold formulas only. The base class resolves
parameters, casts values and dispatches names; it must not compute a formula of one distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ... import ops
from ...dtype import DType
from ...errors import ArgumentError, ArgumentValueError, MissingFunctionError
from ...tensor import Tensor
from .. import _check
from .._types import DTypeLike
from ..cell import Cell
from ._parameters import Value, as_parameter, common_shape, number_text, parameter_dtype

__all__ = ["Distribution", "MissingFunctionError"]

_PACKAGE = __name__.rpartition(".")[0]


def _not(x: Tensor) -> Tensor:
    return 1.0 - x


def _not_exp(x: Tensor) -> Tensor:
    return -ops.expm1(x)


def _log_not(x: Tensor) -> Tensor:
    return ops.log1p(-x)


def _log_not_exp(x: Tensor) -> Tensor:
    return ops.log(-ops.expm1(x))


_Rules = tuple[tuple[str, Callable[[Tensor], Tensor]], ...]

# function of a value -> functions that it follows from, the most direct first
_OF_VALUES: dict[str, _Rules] = {
    "prob": (("log_prob", ops.exp),),
    "log_prob": (("prob", ops.log),),
    "cdf": (("log_cdf", ops.exp), ("survival_function", _not), ("log_survival", _not_exp)),
    "log_cdf": (("cdf", ops.log), ("survival_function", _log_not), ("log_survival", _log_not_exp)),
    "survival_function": (("log_survival", ops.exp), ("cdf", _not), ("log_cdf", _not_exp)),
    "log_survival": (("survival_function", ops.log), ("cdf", _log_not), ("log_cdf", _log_not_exp)),
}
# function of the distribution alone -> the same
_OF_DISTRIBUTIONS: dict[str, _Rules] = {
    "mean": (),
    "mode": (),
    "sd": (("var", ops.sqrt),),
    "var": (("sd", ops.square),),
    "entropy": (),
}
_OTHERS = ("kl_loss", "cross_entropy", "sample", "get_dist_args", "get_dist_type")


class Distribution(Cell):
    """Base class of distributions (`mindspore.nn.probability.distribution.Distribution`).

    A subclass defines formulas: methods named as the functions with an underscore in front, such
    as ``_log_prob`` and ``_mean``. A function without a formula follows from another one where it
    can: `prob` from ``_log_prob``, `sd` from ``_var``, all four of `cdf`, `log_cdf`,
    `survival_function` and `log_survival` from any of them, `cross_entropy` from ``_entropy`` and
    ``_kl_loss``. Every function takes the parameters of another distribution of the same kind as
    further arguments.

    Args:
        seed: seed of the samples, a non-negative int; None or 0 uses the global seed.
        dtype: dtype of the samples.
        name: name of the distribution.
        param: dictionary of the constructor's arguments; ``param["param_dict"]`` holds the
            parameters by name.

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: a negative seed, or parameters whose shapes do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> from duograph.nn.probability.distribution import Distribution
        >>> class Unit(Distribution):
        ...     def __init__(self):
        ...         super().__init__(None, ms.float32, "Unit", {"param_dict": {}})
        ...     def _prob(self, value):
        ...         return ms.ops.logical_and(value >= 0, value <= 1).astype(ms.float32)
        >>> print(Unit().prob(ms.Tensor([0.5, 2.0])))
        [1. 0.]
    """

    # names of the parameters as keywords of the functions, where they are not those of the
    # constructor
    _keywords: ClassVar[tuple[str, ...] | None] = None
    _labels: ClassVar[dict[str, str]] = {}  # name of a parameter -> its name in the repr
    _whole: ClassVar[bool] = False  # values are whole numbers: they are cast to the parameters'

    def __init__(
        self, seed: int | None, dtype: DTypeLike, name: str, param: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._name = _check.instance(type(self).__name__, "name", name, str)
        self._seed = 0 if seed is None else _check.non_negative_int(name, "seed", seed)
        self._dtype: DTypeLike = dtype
        self._parameters = {
            key: value
            for key, value in param.items()
            if key not in ("self", "param") and not key.startswith("_")
        }
        self.default_parameters: list[Tensor | None] = []
        self.parameter_names: list[str] = []
        if "distribution" not in self._parameters:
            values: dict[str, Value] = self._parameters.get("param_dict", {})
            self.parameter_type: DType = parameter_dtype(name, values, dtype)  # type: ignore[arg-type]
            self._is_scalar_batch = all(
                value is None or isinstance(value, (int, float)) for value in values.values()
            )
            self._batch_shape = self._calc_batch_shape(values)
            self._broadcast_shape = self._batch_shape

    def _calc_batch_shape(self, values: dict[str, Value]) -> tuple[int, ...] | None:
        """Return the shape to which the parameters in `values` broadcast.

        The result is None if one of the parameters is None.
        """
        made = [
            None if value is None else as_parameter(self._name, key, value, None).shape
            for key, value in values.items()
        ]
        if any(shape is None for shape in made):
            return None
        return common_shape(self._name, [shape for shape in made if shape is not None])

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return self._name

    @property
    def dtype(self) -> DTypeLike:
        """Dtype of the samples."""
        return self._dtype

    @property
    def seed(self) -> int:
        """Seed of the samples; 0 stands for the global seed."""
        return self._seed

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the constructor by name.

        The distribution's own parameters, such as the mean, are in a dict under the name
        ``param_dict``.
        """
        return self._parameters

    @property
    def is_scalar_batch(self) -> bool:
        """Whether all parameters that the constructor received are numbers."""
        return self._is_scalar_batch

    @property
    def batch_shape(self) -> tuple[int, ...] | None:
        """Shape to which the constructor's parameters broadcast; None if one of them is None."""
        return self._batch_shape

    @property
    def broadcast_shape(self) -> tuple[int, ...] | None:
        """Shape of one sample; None if a parameter of the constructor is None."""
        return self._broadcast_shape

    def _add_parameter(self, value: Value, name: str) -> Tensor | None:
        """Register a parameter of the constructor, the default of later calls; return its Tensor.

        For None it registers and returns None: every call must then pass the parameter.
        """
        made = None if value is None else as_parameter(self._name, name, value, self.parameter_type)
        self.default_parameters.append(made)
        self.parameter_names.append(name)
        return made

    def _hold(self, values: dict[str, Value]) -> None:
        """Register parameters of the constructor, and set each as an attribute of the distribution.

        A Parameter that is an attribute can be trained.
        """
        for name, value in values.items():
            attribute = f"_{name}_value" if name in ("mean", "sd", "df") else f"_{name}"
            setattr(self, attribute, self._add_parameter(value, name))

    def _check_value(self, value: object, name: str) -> Tensor:
        """Return `value` if it is a Tensor; `name` is its name in the error.

        Raises:
            TypeError: another type.
        """
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{self._name}: got {type(value).__name__} for {name}; wanted a Tensor"
            )
        return value

    def _check_param_type(self, *args: object) -> object:
        """Return the parameters of one call, broadcast to a common shape; None means the default.

        Returns:
            Tensor if there is one parameter, else a tuple of Tensors.

        Raises:
            TypeError: a parameter that is given neither here nor to the constructor.
        """
        found: list[Tensor] = []
        given = (*args, *[None] * (len(self.parameter_names) - len(args)))
        for arg, name, default in zip(
            given, self.parameter_names, self.default_parameters, strict=True
        ):
            value = default if arg is None else self._parameter(arg, name)
            if value is None:
                raise ArgumentError(
                    f"{self._name}: got no {name}; wanted a Tensor, because the constructor got "
                    "none either"
                )
            found.append(value)
        if len(found) == 1:
            return found[0]
        shape = common_shape(self._name, [p.shape for p in found])
        return tuple(p if p.shape == shape else ops.broadcast_to(p, shape) for p in found)

    def _parameter(self, value: object, name: str) -> Tensor:
        """Return the argument of a call as a Tensor cast to the dtype of the parameters."""
        return self._check_value(value, name).astype(self.parameter_type)

    def _ordered(
        self, function: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> list[Any]:
        """Return a call's parameters as a list in the constructor's order; None means the default.

        They are given by position (`args`) or name (`kwargs`). Error messages name the called
        function as `function`.
        """
        keywords = self._keywords or tuple(self.parameter_names)
        if len(args) > len(keywords):
            raise ArgumentError(
                f"{self._name}.{function}: got {len(args)} parameters; wanted {', '.join(keywords)}"
            )
        found = [*args, *[None] * (len(keywords) - len(args))]
        for key, value in kwargs.items():
            plain = key.removesuffix("_a") if key not in keywords else key
            if plain not in keywords or keywords.index(plain) < len(args):
                raise ArgumentError(
                    f"{self._name}.{function}: got {key!r} unexpectedly or twice; wanted "
                    f"{', '.join(keywords)}"
                )
            found[keywords.index(plain)] = value
        return found

    def _resolved(
        self, function: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Tensor, ...]:
        """Return the parameters of one call, defaults filled in, as Tensors of the same shape."""
        found = self._check_param_type(*self._ordered(function, args, kwargs))
        return found if isinstance(found, tuple) else (found,)

    def _evaluate(
        self, function: str, rules: _Rules, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Any:
        """Compute `function`, such as "prob", by its formula ``_prob``, or from another formula.

        Each rule is (name of another function, conversion of its result); the first whose formula
        the class defines is used. Raises MissingFunctionError if there is none.
        """
        own = getattr(self, f"_{function}", None)
        if own is not None:
            return own(*args, **kwargs)
        for source, transform in rules:
            formula = getattr(self, f"_{source}", None)
            if formula is not None:
                return transform(formula(*args, **kwargs))
        raise MissingFunctionError(f"{function} is not implemented for {self._name} distribution.")

    def _of_value(self, function: str, value: object, *args: object, **kwargs: object) -> Any:
        if self.parameter_names:
            args, kwargs = self._resolved(function, args, kwargs), {}
            cast = self.parameter_type if self._whole else self._dtype
            value = self._check_value(value, "value").astype(cast)
        return self._evaluate(function, _OF_VALUES[function], (value, *args), kwargs)

    def _of_distribution(self, function: str, *args: object, **kwargs: object) -> Any:
        if self.parameter_names:
            args, kwargs = self._resolved(function, args, kwargs), {}
        return self._evaluate(function, _OF_DISTRIBUTIONS[function], args, kwargs)

    def prob(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the density at `value`, or for a discrete distribution its probability."""
        return self._of_value("prob", value, *args, **kwargs)

    def log_prob(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the logarithm of `prob`."""
        return self._of_value("log_prob", value, *args, **kwargs)

    def cdf(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the probability that a number of the distribution is at most `value`."""
        return self._of_value("cdf", value, *args, **kwargs)

    def log_cdf(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the logarithm of `cdf`."""
        return self._of_value("log_cdf", value, *args, **kwargs)

    def survival_function(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the probability that a number of the distribution is greater than `value`."""
        return self._of_value("survival_function", value, *args, **kwargs)

    def log_survival(self, value: Tensor, *args: Value, **kwargs: Value) -> Tensor:
        """Return the logarithm of `survival_function`."""
        return self._of_value("log_survival", value, *args, **kwargs)

    def mean(self, *args: Value, **kwargs: Value) -> Tensor:
        """Return the mean."""
        return self._of_distribution("mean", *args, **kwargs)

    def mode(self, *args: Value, **kwargs: Value) -> Tensor:
        """Return the value of the highest probability or density."""
        return self._of_distribution("mode", *args, **kwargs)

    def sd(self, *args: Value, **kwargs: Value) -> Tensor:
        """Return the standard deviation."""
        return self._of_distribution("sd", *args, **kwargs)

    def var(self, *args: Value, **kwargs: Value) -> Tensor:
        """Return the variance."""
        return self._of_distribution("var", *args, **kwargs)

    def entropy(self, *args: Value, **kwargs: Value) -> Tensor:
        """Return the entropy, in nats."""
        return self._of_distribution("entropy", *args, **kwargs)

    def _split(
        self, function: str, dist: object, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """Split the arguments of `kl_loss` or `cross_entropy` of distributions a (this one) and b.

        Returns (parameters of b, parameters of a); `dist` must name the class of both.
        """
        kind = self.get_dist_type()
        if dist != kind:
            raise ArgumentValueError(f"{self._name}.{function}: got dist={dist!r}; wanted {kind!r}")
        keywords = [f"{key}_b" for key in self._keywords or self.parameter_names]
        listed, rest = list(args[: len(keywords)]), dict(kwargs)
        for key in keywords[len(listed) :]:
            if key not in rest:
                raise ArgumentError(f"{self._name}.{function}: got no {key}; wanted a Tensor")
            listed.append(rest.pop(key))
        other = [self._parameter(v, key) for v, key in zip(listed, keywords, strict=True)]
        return other, self._resolved(function, args[len(keywords) :], rest)

    def kl_loss(self, dist: str, *args: Value, **kwargs: Value) -> Tensor:
        """Return the Kullback-Leibler divergence KL(a||b) of this distribution a from b, in nats.

        Args:
            dist: name of the class of both distributions.
            args, kwargs: the parameters of b, then, if wanted, those of a.

        Raises:
            NotImplementedError: no formula for this class.
            TypeError: a parameter of b is missing, or no Tensor.
            ValueError: `dist` names another class.
        """
        formula = getattr(self, "_kl_loss", None)
        if formula is None:
            return self._evaluate("kl_loss", (), args, kwargs)
        if not self.parameter_names:
            return formula(dist, *args, **kwargs)
        other, own = self._split("kl_loss", dist, args, kwargs)
        return formula(dist, *other, *own)

    def cross_entropy(self, dist: str, *args: Value, **kwargs: Value) -> Tensor:
        """Return the cross entropy H(a, b) = H(a) + KL(a||b), in nats.

        The arguments are those of `kl_loss`.
        """
        formula = getattr(self, "_cross_entropy", None)
        if formula is not None:
            return formula(dist, *args, **kwargs)
        if getattr(self, "_kl_loss", None) is None or getattr(self, "_entropy", None) is None:
            return self._evaluate("cross_entropy", (), args, kwargs)
        divergence = self.kl_loss(dist, *args, **kwargs)
        own = self._split("cross_entropy", dist, args, kwargs)[1] if self.parameter_names else ()
        return self.entropy(*own) + divergence

    def sample(self, shape: tuple[int, ...] = (), *args: object, **kwargs: object) -> Tensor:
        """Return random numbers of `shape` followed by the shape of the parameters.

        Raises:
            TypeError: a shape that is no tuple.
        """
        if self.parameter_names:
            if not isinstance(shape, tuple):
                raise ArgumentError(f"{self._name}: got shape={shape!r}; wanted a tuple of ints")
            args, kwargs = self._resolved("sample", args, kwargs), {}
        found = self._evaluate("sample", (), (shape, *args), kwargs)
        return found.astype(self._dtype)

    def get_dist_args(self, *args: Value, **kwargs: Value) -> tuple[Tensor | None, ...]:
        """Return the parameters of one call; those that are not given are the constructor's."""
        given = self._ordered("get_dist_args", args, kwargs)
        for value, name in zip(given, self.parameter_names, strict=True):
            if value is not None:
                self._check_value(value, name)
        return tuple(
            default if value is None else value
            for value, default in zip(given, self.default_parameters, strict=True)
        )

    def get_dist_type(self) -> str:
        """Return the name of the class, which `kl_loss` takes as `dist`.

        For a user's subclass this is the name of its base class in this package.
        """
        kinds = [c for c in type(self).__mro__ if c.__module__.startswith(f"{_PACKAGE}.")]
        return type(self).__name__ if kinds[0] is Distribution else kinds[0].__name__

    def construct(self, name: str, *args: object, **kwargs: object) -> Any:
        """Call the function `name`, such as ``"prob"``, with the other arguments.

        Raises:
            NotImplementedError: no such function.
        """
        if name not in _OF_VALUES and name not in _OF_DISTRIBUTIONS and name not in _OTHERS:
            raise MissingFunctionError(f"{name} is not implemented for {self._name} distribution.")
        return getattr(self, name)(*args, **kwargs)

    def _draw_seed(self) -> int | None:
        """Return the seed for one call of `sample`; None selects the global random generator."""
        return self._seed or None

    def extend_repr(self) -> str:
        if not self._is_scalar_batch:
            return f"batch_shape = {self._broadcast_shape}"
        pairs = zip(self.parameter_names, self.default_parameters, strict=True)
        return number_text(dict(pairs), self._labels)  # type: ignore[arg-type]
