"""report.html: the report as one self-contained page with all launches and samples."""
