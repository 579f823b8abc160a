"""The project's nouns as frozen dataclasses. Nothing here reads, writes or imports anything of ours."""
