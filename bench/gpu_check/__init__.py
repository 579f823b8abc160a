"""`make gpu-check`: everything that needs a card, in one command, and a bundle for an issue."""
