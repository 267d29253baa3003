"""``python -m memory_app``: the same as ``memory``, also where the script is not on the path."""

from memory_app.main.cli import main

main()
