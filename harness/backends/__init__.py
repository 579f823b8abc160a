"""Backends run launches, behind the protocol of `harness.model.backend`: in containers or local environments."""
