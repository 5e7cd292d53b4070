"""Finds numbers and texts that f-strings put into SQL, by reading the source.

It knows types only as far as they are written down: annotations of fields, parameters and results,
module constants, and loops over `range` and `enumerate`. So it misses some; what reads like a
number it does not miss.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

_NUMBER = re.compile(r"\b(int|float|Fraction|Number|Decimal)\b")
_NOT_ONE = re.compile(r"\b(tuple|list|dict|Sequence|Mapping|Iterable|str|set|Callable|NDArray)\b")
_SQL = re.compile(
    r"\b(SELECT|CASE|WHEN|THEN|ELSE|CAST|WHERE|FROM|GROUP BY|ORDER BY|AND|SUM|BETWEEN|LIMIT|HAVING)"
    r"\b|\b[A-Z_][A-Z_0-9]+\(|::|\|\|| [*/+<>=-]=? "
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift)
_NUMERIC_CALLS = {"int", "float", "len", "round", "abs", "sum", "Fraction"}


@dataclass(frozen=True)
class Found:
    """An expression that an f-string puts into SQL."""

    file: str
    line: int
    text: str


@dataclass
class Known:
    """Names that stand for numbers."""

    fields: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)

    def learn(self, tree):
        self.constants |= {name for name in _names(tree.body) if name.isupper()}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and _is_number(each.annotation):
                        self.fields.add(each.target.id)
            if isinstance(node, ast.FunctionDef) and node.returns and _is_number(node.returns):
                properties = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
                (self.fields if properties else self.calls).add(node.name)


def put_into_sql(folders, source):
    """What is put into the SQL of all files of the folders; `source` is the package."""
    trees = {p: ast.parse(p.read_text()) for folder in folders for p in Path(folder).rglob("*.py")}
    known = Known()
    for tree in trees.values():
        known.learn(tree)
    return [
        found
        for path, tree in sorted(trees.items())
        for found in in_tree(tree, str(path.relative_to(source)), known)
    ]


def in_tree(tree, file, known):
    """What one file puts into SQL."""
    told = {id(part) for node in ast.walk(tree) if _tells(node) for part in ast.walk(node)}
    names = _names(tree.body)
    own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_text(n)}
    known = Known(known.fields, known.calls - own, known.constants)
    return [found for node in tree.body for found in _in_node(node, file, known, names, told)]


def _in_node(node, file, known, names, told):
    if isinstance(node, ast.FunctionDef):
        every = [*node.args.args, *node.args.kwonlyargs]
        numbers = {a.arg for a in every if a.annotation and _is_number(a.annotation)}
        names = (names - {a.arg for a in every}) | numbers | _names(ast.walk(node))
    if isinstance(node, ast.JoinedStr) and id(node) not in told:
        yield from _in_string(node, file, known, names)
    for child in ast.iter_child_nodes(node):
        yield from _in_node(child, file, known, names, told)


def _in_string(node, file, known, names):
    static = "".join(p.value if isinstance(p, ast.Constant) else "?" for p in node.values)
    if not _SQL.search(static):
        return
    before = ""
    for part, after in zip(node.values, [*node.values[1:], None], strict=True):
        if isinstance(part, ast.Constant):
            before = part.value
            continue
        follows = after.value if isinstance(after, ast.Constant) else ""
        text = ast.unparse(part.value)
        as_text = before.endswith("'") and follows.startswith("'")
        in_a_name = re.search(r"[A-Za-z_]$", before)
        shown = part.conversion != -1 or part.format_spec is not None
        if as_text or shown or (not in_a_name and _number(part.value, known, names)):
            yield Found(file, part.lineno, text)
        before = ""


def _number(node, known, names):
    match node:
        case ast.Constant():
            return isinstance(node.value, int | float)
        case ast.Name():
            return node.id in names | known.constants
        case ast.Attribute():
            return node.attr in known.fields
        case ast.UnaryOp():
            return _number(node.operand, known, names)
        case ast.BinOp(op=op):
            sides = (node.left, node.right)
            return isinstance(op, _ARITHMETIC) and any(_number(s, known, names) for s in sides)
        case ast.IfExp():
            return any(_number(side, known, names) for side in (node.body, node.orelse))
        case ast.Call(func=ast.Name(id=name)):
            return name in known.calls | _NUMERIC_CALLS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in known.calls
    return False


def _names(nodes):
    """Names that a few plain statements make numbers."""
    found = set()
    for node in nodes:
        match node:
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                called = over.func if isinstance(over, ast.Call) else None
                call = called.id if isinstance(called, ast.Name) else ""
                if call == "range" and isinstance(target, ast.Name):
                    found.add(target.id)
                if call == "enumerate" and isinstance(target, ast.Tuple):
                    found.add(target.elts[0].id)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if _number(value, Known(), found):
                    found.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=many)], value=ast.Tuple(elts=values)):
                for one, value in zip(many, values, strict=False):
                    if isinstance(one, ast.Name) and _number(value, Known(), found):
                        found.add(one.id)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if _is_number(annotation):
                    found.add(name)
    return found


def _is_text(function):
    return function.returns is not None and ast.unparse(function.returns) == "str"


def _is_number(annotation):
    text = ast.unparse(annotation)
    return bool(_NUMBER.search(text)) and not _NOT_ONE.search(text)


def _tells(node):
    """Errors and what is written for people is no SQL."""
    if isinstance(node, ast.Raise):
        return True
    name = node.func if isinstance(node, ast.Call) else None
    return isinstance(name, ast.Name) and name.id.endswith("Error")
