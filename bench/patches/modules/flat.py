"""Flattens nested documents."""


def compute(document):
    """Return a document's values by their paths."""
    values = {}
    collect(document, "", values)
    return values


def collect(document, path, values):
    """Add the values of a part of the document."""
    if isinstance(document, dict):
        for key, value in document.items():
            collect(value, path + "." + str(key), values)
    elif isinstance(document, list):
        for index, value in enumerate(document):
            collect(value, path + "[" + str(index) + "]", values)
    else:
        values[path] = document
