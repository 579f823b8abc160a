"""Reports of results: Markdown, an HTML page, terminal output, and formats of other tools."""
