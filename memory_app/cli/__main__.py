"""``python -m memory_app.cli``: the same as ``memory``, also where the script is not on the path."""

from memory_app.cli import main

main()
