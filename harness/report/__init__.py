"""Makes reports from results: Markdown, a page, terminal output and formats of other tools."""
