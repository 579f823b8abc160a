"""The available environments (docker-bake.hcl and locks), scenarios (their headers) and suites."""
