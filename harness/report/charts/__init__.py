"""Charts: Vega-Lite specifications from the numbers of a report, and SVG files next to report.md."""
