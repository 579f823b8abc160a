"""Finds out whether a plain script does something when it runs, or only defines benchmarks, tests and functions.

It reads the script's syntax tree. It imports only `names` of the kit, because harness uses it too.
"""

import ast
import re

from .names import parse

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# The kinds of scripts. Only CODE does something when it is run.
CODE, BENCHMARKS, TESTS, DEFINITIONS, IMPORTS = "code", "benchmarks", "tests", "definitions", "imports"

ADVICE = {
    BENCHMARKS: "To run the benchmarks, pass these arguments: -- --benchmarks=.",
    TESTS: "The tests are never called: call them at the end of the script, or pass a test's name with --function",
    DEFINITIONS: "The script only defines functions and classes: call one of them at its end",
    IMPORTS: "The script only imports modules: add the code to measure",
    CODE: "Add the code to measure, or repeat it",
}


def kind(source):
    """Return the kind of a script, which shows what it does as the main module. Invalid Python counts as CODE."""
    tree = parse(source)
    if tree is None:
        return CODE
    if benchmarks(tree) and (is_passive(tree.body) or runs_test_main(tree)):
        return BENCHMARKS
    if not is_passive(tree.body):
        return CODE
    if any(name.startswith("test") for name, _ in functions(tree)):
        return TESTS
    return DEFINITIONS if any(functions(tree)) else IMPORTS


def wrong_guard(source):
    """Return the line and the text of `if __name__ == "main":`, if the script does nothing without it; or None.

    The name of a script is `__main__`, so code under another name never runs.
    """
    tree = parse(source)
    guards = [
        node for node in (tree.body if tree else ()) if guarded_name(node) not in (None, "__main__") and not node.orelse
    ]
    if guards and is_passive(node for node in tree.body if node not in guards):
        return guards[0].lineno, guarded_name(guards[0])
    return None


def guarded_name(statement):
    """Return the text that a statement `if __name__ == TEXT:` compares, or None."""
    test = getattr(statement, "test", None)
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Eq):
        return text_of(test.comparators[0]) if test.left.id == "__name__" else None
    return None


def is_passive(body):
    """Return whether statements only import modules, define functions and classes, and assign constants."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try)):
            handlers = getattr(statement, "handlers", [])
            parts = [statement.body, statement.orelse, getattr(statement, "finalbody", [])]
            if not all(map(is_passive, parts + [handler.body for handler in handlers])):
                return False
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
            if any(isinstance(node, (ast.Call, ast.Await, ast.Yield)) for node in ast.walk(statement)):
                return False
        elif not isinstance(statement, FUNCTIONS + (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)):
            return False
    return True


def runs_test_main(tree):
    """Return whether a script calls `tf.test.main()`."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(
        isinstance(call, ast.Attribute) and call.attr == "main" and ends_in(call.value, "test") for call in calls
    )


def ends_in(node, name):
    """Return whether an expression is this name, or an attribute of this name."""
    return getattr(node, "attr", getattr(node, "id", None)) == name


def functions(tree):
    """Yield the functions and methods of a script, each with its name: `f`, `Class.f`."""
    for statement in tree.body:
        if isinstance(statement, FUNCTIONS):
            yield statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            for method in statement.body:
                if isinstance(method, FUNCTIONS):
                    yield statement.name + "." + method.name, method


def benchmarks(tree):
    """Return the names under which TensorFlow reports the benchmarks of `tf.test.Benchmark` classes.

    The argument is a syntax tree or a text. A name is `Class.method`, or `Class.name` if the method passes a name.
    """
    names = []
    for statement in (ast.parse(tree) if isinstance(tree, str) else tree).body:
        if isinstance(statement, ast.ClassDef) and any(ends_in(base, "Benchmark") for base in statement.bases):
            for method in statement.body:
                if isinstance(method, FUNCTIONS) and method.name.startswith("benchmark"):
                    given = reported_names(method)
                    names += ["{}.{}".format(statement.name, name) for name in given or [method.name]]
    return names


def reported_names(method):
    """Return the names that a method passes to `report_benchmark`, if they are texts."""
    keywords = (
        keyword
        for node in ast.walk(method)
        if isinstance(node, ast.Call) and ends_in(node.func, "report_benchmark")
        for keyword in node.keywords
        if keyword.arg == "name"
    )
    return [text for text in (text_of(keyword.value) for keyword in keywords) if text is not None]


def text_of(node):
    """Return the text of a literal, or None."""
    text = getattr(node, "value", getattr(node, "s", None))
    return text if isinstance(text, str) else None


def benchmarked_tests(source):
    """Return the names of the functions that pytest-benchmark runs: tests with its fixture `benchmark`."""
    tree = parse(source)
    return [
        name
        for name, function in (functions(tree) if tree else ())
        if re.match(r"(Test\w*\.)?test", name) and "benchmark" in [argument.arg for argument in function.args.args]
    ]
