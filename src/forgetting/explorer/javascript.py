"""Formulas of the registry as JavaScript: each is translated from the Python that `fg.bounds.evaluate` runs.

A formula is a function of (setting, k), made of other such functions. The translation walks through their source with
what is known when the page is made (`Known`), and writes down what depends on the setting and on k (`Code`). What it
cannot translate and what depends on k alone, or on T and k, becomes a table over the k of the page. Programs that have
a counterpart in JavaScript are named in `Translator.programs`.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

from forgetting.explorer.function_source import NoSourceError, definition, seen_by
from forgetting.theory.setting import Setting, known


class Untranslatable(Exception):  # noqa: N818  (it stops a translation, and never reaches a user)
    """A part of a formula that is neither translated nor a table."""


class Known(NamedTuple):
    """What is known when the page is made."""

    value: Any


class Code(NamedTuple):
    """What is computed in the page."""

    text: str


Part = Known | Code
OPERATIONS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "===", ast.NotEq: "!==", ast.Is: "===",
    ast.IsNot: "!==",
}  # fmt: skip
FUNCTIONS: Mapping[Any, str] = {
    math.sqrt: "Math.sqrt", math.exp: "Math.exp", math.log: "Math.log", math.log1p: "Math.log1p", min: "Math.min",
    math.expm1: "Math.expm1", math.cos: "Math.cos", math.sin: "Math.sin", math.acos: "Math.acos", max: "Math.max",
    round: "Math.round", int: "Math.trunc", abs: "Math.abs", math.hypot: "Math.hypot",
}  # fmt: skip
SAME = (known, float)  # functions that change no number
TOLERANCES = {"rel_tol": "1e-9", "abs_tol": "0"}  # of math.isclose


class _Numbers:
    """A setting of which no more than T is known."""

    def __init__(self, T: int | None = None) -> None:
        if T is not None:
            self.T = T

    def __getattr__(self, name: str) -> Any:
        raise Untranslatable(f"depends on {name}")


@dataclass
class Translator:
    """Translates functions of (setting, k), and collects the JavaScript functions and tables that they share.

    Attributes:
        steps: the k of the page.
        tasks: the numbers of tasks of the page.
        programs: Python functions that have a counterpart in JavaScript, with its name.

    >>> from forgetting.theory.expression import K, S, root
    >>> translator = Translator(steps=(1, 2), tasks=(2,), programs={})
    >>> translator.formula((2 * S / root(K, 4)).compute)
    '((2*scale(s))/(k**0.25))'
    """

    steps: Sequence[int]
    tasks: Sequence[int]
    programs: Mapping[Callable[..., Any], str]
    functions: dict[Any, tuple[str, str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)

    def formula(self, function: Callable[..., Any]) -> str:
        """The value of a function of (setting, k), as JavaScript in s and k."""
        return _text(self._called(function, [Code("s"), Code("k")], {}))

    def function(self, function: Callable[..., Any], *names: str) -> str:
        """A function of numbers, as a JavaScript function of these names.

        >>> from forgetting.theory.expression import spectral
        >>> Translator((1,), (2,), {}).function(spectral, "n")
        '(n)=>spectral(n)'
        """
        return f"({','.join(names)})=>{_text(self._called(function, list(map(Code, names)), {}))}"

    def source(self) -> str:
        """The functions and tables that the formulas use, as JavaScript; `stepIndex` has the place of each k."""
        tables = [f"const {name}={values};" for values, name in self.tables.items()]
        return "\n".join([*tables, *(text for _, text in self.functions.values())])

    # ----------------------------------------------------------------------------------------------------- functions

    def _called(self, function: Any, given: Sequence[Part], named: Mapping[str, Part]) -> Part:
        if function in SAME:
            return given[0]
        if function is getattr and isinstance(given[1], Known):
            return self._attribute(given[0], given[1].value)
        if function is math.isclose:
            options = [_text(named[name]) if name in named else value for name, value in TOLERANCES.items()]
            return Code(f"isClose({','.join([*map(_text, given), *options])})")
        if isinstance(function, type(len)) or function in (int, round):
            if function in FUNCTIONS:
                return Code(f"{FUNCTIONS[function]}({','.join(map(_text, given))})")
            raise Untranslatable(f"calls {function}")
        if function in self.programs:
            return Code(f"{self.programs[function]}({','.join(map(_text, given))})")
        code = getattr(function, "__code__", None)
        if code is None:
            raise Untranslatable(f"calls {function}")
        try:
            node = definition(code)
        except NoSourceError as error:
            raise Untranslatable(str(error)) from error
        scope: dict[str, Part] = {name: Known(value) for name, value in seen_by(function).items()}
        try:
            bound = inspect.signature(function).bind(*given, **named)
        except TypeError as error:
            raise Untranslatable(f"calls {function}: {error}") from None
        defaults = {
            name: Known(parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        values: dict[str, Part] = {**defaults, **bound.arguments}
        if isinstance(node, ast.Lambda):
            return self._value(node.body, {**scope, **values})
        return self._defined(function, node, scope, values)

    def _defined(self, function: Any, node: ast.FunctionDef, scope: dict[str, Part], values: dict[str, Part]) -> Part:
        """A call of a JavaScript function of its own, made for the arguments that are known."""
        fixed = {name: value for name, value in values.items() if isinstance(value, Known)}
        free = [name for name in values if name not in fixed]
        key = (function, tuple((name, repr(value.value)) for name, value in fixed.items()))
        if key not in self.functions:
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            changed = {part.id for part in names if isinstance(part.ctx, ast.Store)}
            name, taken = node.name.strip("_"), {made for made, _ in self.functions.values()}
            name = f"{name}{len(self.functions)}" if name in taken else name
            starts = {one: _text(fixed[one]) if one in fixed else "null" for one in sorted(changed - set(free))}
            lets = [f"let {one}={start};" for one, start in starts.items()]
            inner = {**scope, **values, **{one: Code(one) for one in (*free, *changed)}}
            body = self._body(node.body, inner)
            self.functions[key] = name, f"const {name}=({','.join(free)})=>{{{''.join(lets)}{body}}};"
        return Code(f"{self.functions[key][0]}({','.join(_text(values[name]) for name in free)})")

    def _body(self, nodes: Sequence[ast.stmt], scope: dict[str, Part]) -> str:
        return "".join(self._statement(node, scope) for node in nodes)

    def _statement(self, node: ast.stmt, scope: dict[str, Part]) -> str:
        match node:
            case ast.Return(value=value) if value is not None:
                return f"return {_text(self._value(value, scope))};"
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return f"{name}={_text(self._value(value, scope))};"
            case ast.If(test=test, body=body, orelse=other):
                condition = self._value(test, scope)
                if isinstance(condition, Known):
                    return self._body(body if condition.value else other, scope)
                return f"if({condition.text}){{{self._body(body, scope)}}}else{{{self._body(other, scope)}}}"
            case ast.Expr(value=ast.Constant()):
                return ""
            case ast.Expr(value=ast.Call(func=ast.Name(id="as_kind"))):  # arguments are checked where they are given
                return ""
        raise Untranslatable(f"has a statement {type(node).__name__}")

    # --------------------------------------------------------------------------------------------------- expressions

    def _value(self, node: ast.expr, scope: dict[str, Part]) -> Part:
        try:
            return self._translated(node, scope)
        except Untranslatable as reason:
            if scope.get("s") != Code("s") or scope.get("k") != Code("k"):
                raise
            try:
                return Code(self._tabulated(node, scope))
            except Untranslatable as error:
                raise Untranslatable(f"{reason}, and {error}") from None

    def _translated(self, node: ast.expr, scope: dict[str, Part]) -> Part:
        match node:
            case ast.Constant(value=value):
                return Known(value)
            case ast.Name(id=name):
                if name not in scope:
                    raise Untranslatable(f"does not know {name}")
                return scope[name]
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(self._value(inner, scope), name)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return self._joined("Math.floor({}/{})", node, scope, left, right)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in OPERATIONS:
                return self._joined(f"({{}}{OPERATIONS[type(operation)]}{{}})", node, scope, left, right)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._joined("(-{})", node, scope, inner)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._joined("(!{})", node, scope, inner)
            case ast.BoolOp(op=operation, values=values):
                sign = "&&" if isinstance(operation, ast.And) else "||"
                return self._joined(f"({sign.join(['{}'] * len(values))})", node, scope, *values)
            case ast.IfExp(test=test, body=body, orelse=other):
                condition = self._value(test, scope)
                if isinstance(condition, Known):
                    return self._value(body if condition.value else other, scope)
                return Code(f"({condition.text}?{_text(self._value(body, scope))}:{_text(self._value(other, scope))})")
            case ast.Compare(left=left, ops=operations, comparators=others):
                return self._compared(left, operations, others, scope)
            case ast.Tuple(elts=elements):
                return Known(tuple(self._value(element, scope) for element in elements))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._call(function, arguments, keywords, scope)
        raise Untranslatable(f"has an expression {type(node).__name__}")

    def _joined(self, pattern: str, node: ast.expr, scope: dict[str, Part], *inner: ast.expr) -> Part:
        parts = [self._value(one, scope) for one in inner]
        if all(isinstance(part, Known) for part in parts):
            return Known(self._computed(node, [part.value for part in parts if isinstance(part, Known)]))
        return Code(pattern.format(*map(_text, parts)))

    @staticmethod
    def _computed(node: ast.expr, values: Sequence[Any]) -> Any:
        """What an operation gives for values of its operands."""
        names: list[ast.expr] = [ast.Name(f"a{place}", ast.Load()) for place in range(len(values))]
        made: ast.expr
        match node:
            case ast.BinOp(op=operation):
                made = ast.BinOp(names[0], operation, names[1])
            case ast.BoolOp(op=logic):
                made = ast.BoolOp(logic, names)
            case ast.UnaryOp(op=sign):
                made = ast.UnaryOp(sign, names[0])
            case ast.Compare(ops=signs):
                made = ast.Compare(names[0], list(signs), names[1:])
            case _:
                raise Untranslatable(f"has an expression {type(node).__name__}")
        return _evaluated(made, {f"a{place}": value for place, value in enumerate(values)})

    def _compared(
        self, left: ast.expr, operations: Sequence[ast.cmpop], others: Sequence[ast.expr], scope: dict[str, Part]
    ) -> Part:
        parts = [self._value(one, scope) for one in (left, *others)]
        if all(isinstance(part, Known) for part in parts):
            values = [_plain(part) for part in parts]
            return Known(self._computed(ast.Compare(left, list(operations), list(others)), values))
        if any(type(operation) not in OPERATIONS for operation in operations):
            raise Untranslatable("compares with in")
        pairs = zip(parts, operations, parts[1:], strict=False)
        return Code("(" + "&&".join(f"{_text(a)}{OPERATIONS[type(sign)]}{_text(b)}" for a, sign, b in pairs) + ")")

    def _attribute(self, part: Part, name: str) -> Part:
        if isinstance(part, Known):
            if not hasattr(part.value, name):
                raise Untranslatable(f"has no {name}")
            return Known(getattr(part.value, name))
        made = getattr(Setting, name, None)
        if part.text in ("s", "self") and isinstance(made, property):
            return self._called(made.fget, [part], {})
        if part.text in ("s", "self") and callable(made):
            raise Untranslatable(f"has a method {name}")
        return Code(f"{part.text}.{name}")

    def _call(
        self, function: ast.expr, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword], scope: dict[str, Part]
    ) -> Part:
        given: list[Part] = []
        for argument in arguments:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            if isinstance(inner, ast.GeneratorExp):
                given += self._each(inner, scope)
            else:
                given.append(self._value(inner, scope))
        named = {word.arg: self._value(word.value, scope) for word in keywords if word.arg}
        if isinstance(function, ast.Attribute):
            owner = self._value(function.value, scope)
            method = getattr(Setting, function.attr, None)
            if isinstance(owner, Code) and owner.text in ("s", "self") and callable(method):
                return self._called(method, [owner, *given], named)
            target = self._attribute(owner, function.attr)
        else:
            target = self._value(function, scope)
        if not isinstance(target, Known):
            raise Untranslatable("calls what is not known")
        if target.value in (any, all):
            return Code("(" + ("||" if target.value is any else "&&").join(map(_text, given)) + ")")
        if getattr(target.value, "__name__", "") == "replace" and isinstance(given[0], Code):
            return Code(f"{{...{given[0].text},{','.join(f'{name}:{_text(value)}' for name, value in named.items())}}}")
        return self._called(target.value, given, named)

    def _each(self, node: ast.GeneratorExp, scope: dict[str, Part]) -> list[Part]:
        """The elements of a generator over what is known."""
        loop = node.generators[0]
        if len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name):
            raise Untranslatable("has a generator with conditions")
        over = _elements(self._value(loop.iter, scope))
        return [
            self._value(node.elt, {**scope, loop.target.id: one if isinstance(one, Known | Code) else Known(one)})
            for one in over
        ]

    # -------------------------------------------------------------------------------------------------------- tables

    def _tabulated(self, node: ast.expr, scope: dict[str, Part]) -> str:
        """The place of a node in a table over k, or over T and k."""
        values = {name: part.value for name, part in scope.items() if isinstance(part, Known)}

        expression = _compiled(node)

        def row(T: int | None) -> list[float | None]:
            return [_number(expression, {**values, "s": _Numbers(T), "k": k}) for k in self.steps]

        place = "[stepIndex.get(k)]"
        try:
            made: Any = row(None)
            known_values = made
        except Untranslatable:
            made, place = {T: row(T) for T in self.tasks}, f"[s.T]{place}"
            known_values = [value for values in made.values() for value in values]
        if all(value is None for value in known_values):
            raise Untranslatable("has no value at any k")
        text = json.dumps(made, separators=(",", ":"))
        name = self.tables.setdefault(text, f"table{len(self.tables)}")
        return name + place


def _number(expression: CodeType, values: dict[str, Any]) -> float | None:
    """The value of an expression, None where it has none."""
    try:
        value = float(eval(expression, values))
    except (ArithmeticError, ValueError):
        return None
    except Exception as error:  # of whatever a formula of the user calls
        raise Untranslatable(str(error)) from None
    return value if math.isfinite(value) else None


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval")


def _evaluated(node: ast.expr, values: dict[str, Any]) -> Any:
    try:
        return eval(_compiled(node), dict(values))
    except Exception as error:  # of whatever a formula of the user calls
        raise Untranslatable(str(error)) from None


def _plain(part: Part) -> Any:
    """What is known, without the parts that a tuple is made of."""
    if not isinstance(part, Known):
        raise Untranslatable("compares what is not known")
    return tuple(map(_plain, part.value)) if isinstance(part.value, tuple) and any(
        isinstance(one, Known | Code) for one in part.value
    ) else part.value  # fmt: skip


def _elements(part: Part) -> Sequence[Any]:
    if not isinstance(part, Known):
        raise Untranslatable("walks through what is not known")
    return list(part.value)


def _text(part: Part) -> str:
    """A part as JavaScript."""
    if isinstance(part, Code):
        return part.text
    if part.value is None or isinstance(part.value, bool):
        return json.dumps(part.value)
    if isinstance(part.value, int | float):
        value = part.value
        return f"({value!r})" if value < 0 else repr(value) if math.isfinite(value) else "Infinity"
    raise Untranslatable(f"holds {type(part.value).__name__}")
