"""Finds the steps of a plain script: marked by a comment `# harness: step`, or functions by name.

It changes the script's syntax tree and not its text. AutoGraph reads the text again, so graphs contain none of the
changes, and lines keep their numbers.
"""

import ast
import io
import re
import tokenize

STEP, END = "step", "end"
COMMENT = re.compile(r"#\s*harness\s*:\s*(.*?)\s*$")

# The name of the clock of steps in the changed script: see Steps in `steps.py`.
CLOCK = "__harness_steps__"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class MarkError(Exception):
    """A mark or name that can't be timed. The message starts with the line, if there is one."""


class Mark:
    """A comment `# harness: WORD`, with its line (from 1), column and word. `alone`: its line contains no code."""

    def __init__(self, line, column, word, alone):
        self.line = line
        self.column = column
        self.word = word
        self.alone = alone


def marks(source):
    """Return the marks in a script's text, in order. The list is empty if the text isn't valid Python.

    Raises MarkError for an unknown word.
    """
    entries = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            match = COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                line, column = token.start
                word = match.group(1)
                if word not in (STEP, END):
                    text = "line {}: Unknown mark `# harness: {}`: write `# harness: step` or `# harness: end`"
                    raise MarkError(text.format(line, word))
                entries.append(Mark(line, column, word, not token.line[:column].strip()))
    except (tokenize.TokenError, SyntaxError):  # the compiler reports the error, with its line
        return []
    return entries


def instrument(source, path, functions=()):
    """Return a script's syntax tree with code that times its steps, and whether it has any steps.

    functions: names of functions that the script defines (`f`, `Class.f`) or calls (`f`, `model.predict`). Raises
    SyntaxError for invalid Python, and MarkError.
    """
    tree = ast.parse(source, path)
    entries = marks(source)
    targets = [target(tree, entries, at) for at, mark in enumerate(entries) if mark.word == STEP]
    end_marks = {id(mark) for _, _, mark in targets if mark is not None}
    for mark in entries:
        if mark.word == END and id(mark) not in end_marks:
            raise MarkError("line {}: `# harness: end` doesn't end a step that starts above it".format(mark.line))
    # find all nodes before the first change, and change lists from their end, so that positions stay valid
    uses = [find_uses(tree, name) for name in functions]
    for body, (first, last), _ in sorted(targets, key=lambda entry: -entry[1][0]):
        body[first:last] = timed(body[first:last])
    for nodes in uses:
        for node in nodes:
            if isinstance(node, ast.Call):
                node.func = ast.copy_location(clock("timed", node.func), node.func)
            else:
                decorate(node)
    if not (targets or functions):
        return tree, False
    return ast.fix_missing_locations(tree), True


def target(tree, found, at):
    """Return the list with the statements of the mark `found[at]`, their range in this list, and the end mark or None.

    Raises MarkError if the mark has no statement, or if indentations differ.
    """
    mark = found[at]
    positions = [(body, position) for body in bodies(tree) for position in range(len(body))]
    if mark.alone:
        candidates = [pair for pair in positions if start(pair[0][pair[1]]) > mark.line]
    else:
        candidates = [pair for pair in positions if start(pair[0][pair[1]]) == mark.line]
    if not candidates:
        location = "below it" if mark.alone else "that starts in the same line"
        raise MarkError("line {}: `# harness: step` needs a statement {}".format(mark.line, location))
    # of several statements in one line, use the outermost
    body, position = min(candidates, key=lambda pair: start(pair[0][pair[1]]))
    statement = body[position]
    if mark.alone and statement.col_offset != mark.column:
        text = "line {}: `# harness: step` isn't indented like the statement below it, in line {}"
        raise MarkError(text.format(mark.line, start(statement)))
    next_mark = found[at + 1] if at + 1 < len(found) else None
    if next_mark is None or next_mark.word != END:
        return body, (position, position + 1), None
    statements_inside = [node for node in body[position:] if start(node) < next_mark.line]
    if next_mark.column != mark.column or any(last_line(node) > next_mark.line for node in statements_inside):
        text = "line {}: `# harness: end` isn't indented like the step of line {}: use the same indentation"
        raise MarkError(text.format(next_mark.line, mark.line))
    return body, (position, position + len(statements_inside)), next_mark


def timed(statements):
    """Return statements that time these statements as one step.

    If the only statement is a loop, each iteration is a step, including the time to get the next item. If it is a
    function definition, each call is a step.
    """
    (first, other_statements) = statements[0], statements[1:]
    for statement in statements:
        if isinstance(statement, ast.ClassDef) and not other_statements:
            raise MarkError("line {}: a class isn't a step: mark one of its methods".format(start(statement)))
    if isinstance(first, FUNCTIONS) and not other_statements:
        decorate(first)
    elif isinstance(first, ast.For) and not other_statements:
        first.iter = ast.copy_location(clock("passes", first.iter), first.iter)
        first.body = [dropping(first.body)]
    elif isinstance(first, ast.AsyncFor) and not other_statements:
        raise MarkError(
            "line {}: `async for` can't be timed by iteration: mark the statements in it".format(start(first))
        )
    elif isinstance(first, ast.While) and not other_statements:
        first.body = [inside(first.body)]
    else:
        return [inside(statements)]
    return statements


def inside(statements):
    """Return a `with` statement that runs these statements as a step."""
    item = ast.withitem(context_expr=ast.Name(id=CLOCK, ctx=ast.Load()), optional_vars=None)
    return ast.copy_location(ast.With(items=[item], body=statements), statements[0])


def dropping(statements):
    """Return a `try` statement that runs these statements, and drops the step if they raise an exception."""
    handler = ast.ExceptHandler(type=None, name=None, body=[ast.Expr(clock("drop")), ast.Raise(exc=None, cause=None)])
    return ast.copy_location(ast.Try(body=statements, handlers=[handler], orelse=[], finalbody=[]), statements[0])


def decorate(function):
    """Decorate a function so that each call is timed, including the work of its other decorators."""
    if isinstance(function, ast.AsyncFunctionDef):
        raise MarkError("line {}: an async function can't be timed: mark the statements in it".format(start(function)))
    name = ast.Attribute(value=ast.Name(id=CLOCK, ctx=ast.Load()), attr="timed", ctx=ast.Load())
    function.decorator_list.insert(0, ast.copy_location(name, function))


def clock(method, *arguments):
    """Return a call of a method of the step clock."""
    name = ast.Attribute(value=ast.Name(id=CLOCK, ctx=ast.Load()), attr=method, ctx=ast.Load())
    return ast.Call(func=name, args=list(arguments), keywords=[])


def find_uses(tree, name):
    """Return the definitions of a function with this name, or otherwise its calls. Raises MarkError if it has none."""
    defined = list(definitions(tree.body, ""))
    matching = [node for title, node in defined if title == name]
    nodes = matching or [node for _, node in defined if node.name == name] or find_calls(tree, name)
    if not nodes:
        names = sorted({title for title, _ in defined} | {name_call(node) for node in ast.walk(tree)} - {""})
        name_list = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") if names else "no function"
        raise MarkError("it neither defines nor calls a function `{}`; there is {}".format(name, name_list))
    return nodes


def definitions(body, prefix):
    """Yield the functions defined in a list of statements and in nested ones, with their names: `f`, `Class.f`."""
    for statement in body:
        if isinstance(statement, (ast.ClassDef,) + FUNCTIONS):
            if isinstance(statement, FUNCTIONS):
                yield prefix + statement.name, statement
            for definition in definitions(statement.body, prefix + statement.name + "."):
                yield definition
        else:
            for statements_below in bodies(statement):
                for definition in definitions(statements_below, prefix):
                    yield definition


def find_calls(tree, name):
    """Return the calls of a function with this name. For `predict`, also return the calls of `model.predict`."""
    texts = ((node, name_call(node)) for node in ast.walk(tree))
    return [node for node, text in texts if text == name or ("." not in name and text.endswith("." + name))]


def name_call(node):
    """Return the name that a node calls, as it is written: `model.predict`; empty if it calls nothing by name."""
    if not isinstance(node, ast.Call):
        return ""
    parts, value = [], node.func
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id == CLOCK:
        return ""
    return ".".join(reversed(parts + [value.id]))


def bodies(node):
    """Return the lists of statements in a node and its children, the outer ones first."""
    return [
        value
        for child in ast.walk(node)
        for _, value in ast.iter_fields(child)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    ]


def start(statement):
    """Return the first line of a statement, including decorators. Before Python 3.8, `lineno` includes them too."""
    return min([statement.lineno] + [decorator.lineno for decorator in getattr(statement, "decorator_list", [])])


def last_line(statement):
    """Return the last line of a statement."""
    return max(node.lineno for node in ast.walk(statement) if hasattr(node, "lineno"))
