"""report.html: the report as one page that works from a file, with all launches and samples in it."""
