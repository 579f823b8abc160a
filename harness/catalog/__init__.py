"""What exists: environments (docker-bake.hcl and their locks), scenarios (their headers) and suites."""
