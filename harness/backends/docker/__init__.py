"""Launches in containers of a Docker Engine: images built by `docker buildx bake`, a fresh container per launch."""
