"""What executes launches, behind the protocol of `harness.model.backend`: containers, or local environments."""
