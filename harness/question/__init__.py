"""Questions about two sides: both are measured side by side, until the answer is clear."""
