"""Finding since which release, or wheel of one package, something takes longer."""
