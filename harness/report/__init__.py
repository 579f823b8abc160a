"""Analysis to Markdown and to the terminal. The sentences are in the project's `templates/`."""
