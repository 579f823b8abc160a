"""Counts words."""


def compute(text):
    """Return the words of a text with their counts, most frequent first."""
    counts = {}
    for raw in text.split(" "):
        word = raw.strip(".,").lower()
        if word:
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
