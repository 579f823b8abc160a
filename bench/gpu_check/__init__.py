"""`make gpu-check`: run everything that needs a GPU with one command, and write a bundle for an issue."""
