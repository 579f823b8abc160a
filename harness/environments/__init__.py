"""Environments of docker-bake.hcl with their locks, environments named by `-e`, and packages from source."""
