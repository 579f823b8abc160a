"""Charts: Vega-Lite specifications made from the report's numbers, and the SVG files beside report.md."""
