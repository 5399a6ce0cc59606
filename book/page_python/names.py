"""What a cell takes from the cells above it, by its names."""

import ast
import re
import symtable
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# What is drawn from one of these depends on all that was drawn before.
STREAM = re.compile(r"\b(\w+)(?:\s*:[^=\n]+)?\s*=\s*(?:np\.random\.default_rng|random\.Random)\(")


@dataclass
class Piece:
    """Code that runs as a whole: a cell, or one statement of the cell of imports.

    uses: names that it takes from above. binds: names that it gives, changed ones included, which it uses too.
    """

    cell: str
    source: str
    uses: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)


def read(cell: str, source: str) -> Piece:
    """The names of a cell. Raises SyntaxError."""
    tree = ast.parse(source)
    piece = Piece(cell, source)
    later: set[str] = set()
    _statements(tree.body, piece, later)
    piece.uses |= later - piece.binds
    return piece


def pieces(cells: Iterable[tuple[str, str]]) -> list[Piece]:
    """The cells (id, source) of a chapter in order; the one with the id "imports" statement by statement."""
    found: list[Piece] = []
    for name, source in cells:
        parts = _split(source) if name == "imports" else [source]
        found += [read(name, part) for part in parts]
    streams = {match[1] for piece in found for match in STREAM.finditer(piece.source)}
    imported = set().union(*(piece.imported for piece in found))
    for piece in found:
        piece.binds |= piece.uses & streams
        piece.binds -= piece.uses & imported - piece.imported  # np.f() changes no np
    return found


def needed(above: Sequence[Piece], uses: set[str]) -> list[Piece]:
    """The pieces that give these names, and those that they need, in order."""
    wanted, found = set(uses), []
    for piece in reversed(above):
        if piece.binds & wanted:
            found.append(piece)
            wanted = wanted - piece.binds | piece.uses
    return found[::-1]


def _split(source: str) -> list[str]:
    return [ast.unparse(statement) for statement in ast.parse(source).body]


def _statements(body: Sequence[ast.stmt], piece: Piece, later: set[str]) -> None:
    """Add the names of statements that run one after the other."""
    for statement in body:
        match statement:
            case ast.For(target=target, iter=source, body=inner, orelse=last):
                _simple(ast.Assign([target], source, lineno=0), piece, later)
                _statements([*inner, *last], piece, later)
            case ast.While(test=test, body=inner, orelse=last):
                _simple(ast.Expr(test), piece, later)
                _statements([*inner, *last], piece, later)
            case ast.With(items=items, body=inner):
                for item in items:
                    targets = [item.optional_vars] if item.optional_vars else []
                    bound = ast.Assign(targets, item.context_expr, lineno=0)
                    _simple(bound if targets else ast.Expr(item.context_expr), piece, later)
                _statements(inner, piece, later)
            case ast.If(test=test, body=inner, orelse=last):
                _simple(ast.Expr(test), piece, later)
                _statements([*inner, *last], piece, later)
            case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
                _statements(inner, piece, later)
                for handler in handlers:
                    _statements(handler.body, piece, later)
                _statements([*other, *last], piece, later)
            case _:
                _simple(statement, piece, later)


def _simple(statement: ast.stmt, piece: Piece, later: set[str]) -> None:
    table = symtable.symtable(ast.unparse(statement), "cell", "exec")
    names = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    used = {name for name, symbol in names.items() if symbol.is_referenced()}
    inner = _free(table)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        later |= inner  # it is called when all of the cell is there
    else:
        used |= inner
    changed = _changed(statement)
    bound = {n for n, s in names.items() if s.is_assigned() or s.is_imported()}
    piece.uses |= (used | changed) - piece.binds
    piece.binds |= bound | changed
    piece.imported |= {n for n, s in names.items() if s.is_imported()}


def _free(table: symtable.SymbolTable) -> set[str]:
    """The global names of all functions in it."""
    found: set[str] = set()
    for child in table.get_children():
        found |= {s.get_name() for s in child.get_symbols() if s.is_global()} | _free(child)
    return found


def _changed(statement: ast.stmt) -> set[str]:
    """Names of what is changed in place: x += 1, x[i] = 1, x.y = 1, x.append(1)."""
    found: set[str] = set()
    match statement:
        case ast.AugAssign(target=target):
            found |= _root(target)
        case ast.Assign(targets=targets):
            for one in targets:
                for part in one.elts if isinstance(one, ast.Tuple | ast.List) else [one]:
                    if isinstance(part, ast.Subscript | ast.Attribute):
                        found |= _root(part)
        case ast.Expr(value=ast.Call(func=ast.Attribute() as function)):
            found |= _root(function)
        case ast.Delete(targets=targets):
            for one in targets:
                found |= _root(one)
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()
