"""`make gpu-check`: everything that needs a GPU, in one command, and a bundle for an issue."""
