"""``extract_code``: the program in a reply, whatever the text around it.

Code counts if it parses and defines the entry point, independent of the reply's layout. It is either
the whole function, or only its body, which continues the prompt.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_llmeval.scorers.code.layout import TAB
from pytest_llmeval.scorers.code.layout import Piece
from pytest_llmeval.scorers.code.layout import between_fences
from pytest_llmeval.scorers.code.layout import code_text
from pytest_llmeval.scorers.code.layout import dedent
from pytest_llmeval.scorers.code.layout import first_line
from pytest_llmeval.scorers.code.layout import indentation_variants
from pytest_llmeval.scorers.code.layout import is_indented
from pytest_llmeval.scorers.code.layout import open_block
from pytest_llmeval.scorers.code.layout import prose_variants
from pytest_llmeval.scorers.code.layout import split_at_fences
from pytest_llmeval.scorers.code.syntax import Parser
from pytest_llmeval.scorers.code.syntax import bound_names
from pytest_llmeval.scorers.code.syntax import find_function
from pytest_llmeval.scorers.code.syntax import futures_first
from pytest_llmeval.scorers.code.syntax import has_effect
from pytest_llmeval.scorers.code.syntax import has_stray_return
from pytest_llmeval.scorers.code.syntax import is_assigned
from pytest_llmeval.scorers.code.syntax import is_definition
from pytest_llmeval.scorers.code.syntax import is_demonstration
from pytest_llmeval.scorers.code.syntax import looks_like_code
from pytest_llmeval.scorers.code.syntax import method_owner
from pytest_llmeval.scorers.code.syntax import remove_statements
from pytest_llmeval.scorers.code.syntax import returns_value
from pytest_llmeval.scorers.code.syntax import source_of
from pytest_llmeval.scorers.code.syntax import unbound_names

_FENCES = ("```", "~~~")


def extract_code(text: str, *, prompt: str = "", entry_point: str | None = None) -> str:
    """Return the complete program in a reply without the tests, or "" if there is none.

    ``prompt``: the code that the model continues. ``entry_point``: the function that the tests call,
    by default the last one of the prompt. If several blocks define it, the last one that parses is
    used; imports, constants and helper functions that it uses are added from the prompt and from the
    other blocks. Statements that only demonstrate the function (``print``, ``assert``,
    ``if __name__ …``) are removed. Code that does not parse is returned unchanged, so that it fails
    with its own error.

    A pure function of its arguments that never raises; time and memory are bounded.
    """
    reply = code_text(text)
    if not reply.strip():
        return ""
    return _CodeReader(reply, prompt, entry_point).program()


@dataclass(frozen=True, slots=True)
class _Code:
    source: str
    tree: ast.Module


class _CodeReader:
    """Extracts the program of one reply; all parsing uses one parser with one budget."""

    def __init__(self, text: str, prompt: str, entry_point: str | None) -> None:
        self._parser = Parser()
        self._text = text
        self._prompt = prompt
        self._prompt_tree = self._parse_prompt()
        self._entry = entry_point or self._last_function()
        self._pieces = self._cut()

    def program(self) -> str:
        return (
            self._continuation()
            or self._whole()
            or self._around_inner_fences()
            or self._body()
            or self._broken()
        )

    def _parse_prompt(self) -> ast.Module:
        for end in ("", "\n    pass\n"):
            tree = self._parser.tree(self._prompt + end)
            if tree is not None:
                return tree
        return ast.Module(body=[], type_ignores=[])

    def _last_function(self) -> str | None:
        names = [
            statement.name
            for statement in self._prompt_tree.body
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return names[-1] if names else None

    def _cut(self) -> list[Piece]:
        head = open_block(self._text)
        if head is not None and (self._defining(head) or next(self._bodies(head), None)):
            return split_at_fences(f"```python\n{self._text}")
        return split_at_fences(self._text)

    # The whole function.

    def _whole(self) -> str | None:
        fenced = [piece.text for piece in self._pieces if piece.fenced]
        prose = [piece.text for piece in self._pieces if not piece.fenced]
        for texts in (fenced, prose):
            for text in reversed(texts):
                code = self._defining(text)
                if code is not None:
                    others = [other for other in (*prose, *fenced) if other != text]
                    return self._assembled(code, others)
        return None

    def _defining(self, text: str) -> _Code | None:
        """Return the code of a piece that defines the entry point: all of it, or a run of lines."""
        for source in dict.fromkeys((text, dedent(text))):
            tree = self._parser.tree(source)
            if tree is not None and self._is_answer(tree):
                return _Code(source, tree)
        runs = [_Code(*run) for run in self._parser.segments(dedent(text))]
        answers = [run for run in runs if self._is_answer(run.tree)]
        if not answers:
            return None
        return self._with_lent(answers[-1], [run for run in runs if run is not answers[-1]])

    def _is_answer(self, tree: ast.Module) -> bool:
        return self._is_complete(tree) and not has_stray_return(tree)

    def _is_complete(self, tree: ast.Module) -> bool:
        if self._entry is None:
            return any(map(is_definition, tree.body)) or has_effect(tree.body)
        definition = find_function(tree, self._entry)
        if definition is not None:
            return has_effect(definition.body)
        return is_assigned(tree, self._entry) or method_owner(tree, self._entry) is not None

    def _assembled(self, code: _Code, others: Iterable[str]) -> str:
        """Return the answer after the definitions it needs, without its demonstrations."""
        if unbound_names(code.tree.body):
            lenders = [_Code(*run) for other in others for run in self._parser.segments(other)]
            code = self._with_lent(code, lenders)
        source = self._trimmed(code)
        owner = self._owner(code.tree)
        if owner is not None:
            source = f"{source.rstrip()}\n\n\n{self._entry} = {owner}().{self._entry}\n"
        source = self._preamble(code.tree) + source
        tree = self._parser.tree(source) if "__future__" in source else None
        return source if tree is None else futures_first(source, tree)

    def _owner(self, tree: ast.Module) -> str | None:
        """Return the class of which the entry point is a method, or None for a function."""
        entry = self._entry
        if entry is None or find_function(tree, entry) is not None or is_assigned(tree, entry):
            return None
        return method_owner(tree, entry)

    def _trimmed(self, code: _Code, begin: int = 0) -> str:
        """Return the source without the demonstrations from line ``begin`` on."""
        entry = self._entry
        if entry is None:
            return code.source
        docstring = ast.get_docstring(code.tree, clean=False) is not None
        first = code.tree.body[0] if docstring else None
        return remove_statements(
            code.source,
            code.tree,
            lambda stmt: (
                stmt.lineno > begin and stmt is not first and is_demonstration(stmt, entry)
            ),
        )

    def _preamble(self, tree: ast.Module) -> str:
        """Return the prompt's other definitions that the answer does not redefine."""
        redefined = bound_names(tree.body)
        definitions = [
            statement
            for statement in self._prompt_tree.body
            if is_definition(statement)
            and self._entry not in bound_names([statement])
            and not bound_names([statement]) <= redefined - {"*"}
        ]
        return source_of(self._prompt, definitions) + "\n\n" if definitions else ""

    def _with_lent(self, code: _Code, lenders: Iterable[_Code]) -> _Code:
        """Return the code after the definitions of ``lenders`` that it uses and the prompt lacks."""
        available: list[tuple[ast.stmt, _Code]] = []
        defining: dict[str, list[int]] = {}
        for lender in lenders:
            for statement in filter(is_definition, lender.tree.body):
                for name in bound_names([statement]):
                    defining.setdefault(name, []).append(len(available))
                available.append((statement, lender))
        waiting = list(unbound_names(code.tree.body) - bound_names(self._prompt_tree.body))
        lent: set[int] = set()
        while waiting:
            for number in defining.pop(waiting.pop(), ()):
                if number not in lent:
                    lent.add(number)
                    waiting.extend(unbound_names([available[number][0]]))
        if not lent:
            return code
        # In their original order: the later of two definitions of a name counts.
        parts = (source_of(available[n][1].source, [available[n][0]]) for n in sorted(lent))
        source = "".join(parts) + "\n" + code.source
        tree = self._parser.tree(source)
        return code if tree is None else _Code(source, tree)

    # The body alone.

    def _continuation(self) -> str | None:
        """Return the program of a text that begins with an indented line and continues the prompt."""
        first = first_line(self._text)[1]
        if not self._prompt or not is_indented(first) or first.lstrip().startswith(_FENCES):
            return None
        text = self._pieces[0].text
        return next(self._bodies(text), None) or self._beginning_of_body(text)

    def _body(self) -> str | None:
        fenced = [piece.text for piece in self._pieces if piece.fenced and piece.maybe_python]
        prose = [piece.text for piece in self._pieces if not piece.fenced]
        # In prose the body may begin at the first indented line.
        texts = [
            *reversed(fenced),
            *(part for text in reversed(prose) for part in prose_variants(text)),
        ]
        for text in texts:
            program = next(self._bodies(text), None)
            if program is not None:
                return program
        for text in texts:
            for indented in indentation_variants(text, self._margin()):
                program = self._beginning_of_body(indented)
                if program is not None:
                    return program
        return None

    def _bodies(self, text: str) -> Iterator[str]:
        """Yield programs of prompt and text, with corrected indentation."""
        if self._prompt and self._entry is not None:
            for indented in indentation_variants(text, self._margin()):
                program = self._checked_body(indented)
                if program is not None:
                    yield program

    def _margin(self) -> str:
        """Return the indentation of the body of the prompt's function."""
        entry = find_function(self._prompt_tree, self._entry) if self._entry else None
        lines = self._prompt.split("\n")
        if entry is None or entry.body[0].lineno > len(lines):
            return " " * TAB
        margin = lines[entry.body[0].lineno - 1][: entry.body[0].col_offset]
        return margin if margin.isspace() else " " * TAB

    def _checked_body(self, text: str) -> str | None:
        source = self._prompt + text
        tree = self._parser.tree(source)
        return None if tree is None else self._body_program(_Code(source, tree))

    def _beginning_of_body(self, text: str) -> str | None:
        """Return the prompt and the longest part of the text that parses, if that is a body."""
        if not self._prompt or self._entry is None:
            return None
        prefix = self._parser.prefix(self._prompt + text)
        return None if prefix is None else self._body_program(_Code(*prefix))

    def _body_program(self, code: _Code) -> str | None:
        if self._entry is None:
            return None
        begin = self._prompt.count("\n")
        functions = [
            statement
            for statement in code.tree.body
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            and statement.name == self._entry
            and statement.lineno <= begin + 1
        ]
        if not functions:
            return None
        added = [stmt for stmt in functions[-1].body if (stmt.end_lineno or 0) > begin]
        # A call or an assignment alone is a demonstration or a truncated body.
        if not returns_value(added) or has_stray_return(code.tree):
            return None
        return self._trimmed(code, begin)

    # Other forms.

    def _around_inner_fences(self) -> str | None:
        text = between_fences(self._text)
        code = None if text is None else self._defining(text)
        return None if code is None else self._assembled(code, [])

    def _broken(self) -> str:
        """Return code that does not parse, or that defines something else, unchanged."""
        fenced = [piece.text for piece in self._pieces if piece.fenced and piece.maybe_python]
        if fenced:
            return fenced[-1]
        if self._prompt and is_indented(self._text):
            return self._prompt + self._text
        return self._text if looks_like_code(self._text) else ""
