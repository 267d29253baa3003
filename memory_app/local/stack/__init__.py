"""All parts of the product on one machine, each as a child of its own: what ``memory up`` runs.

Servers first, then migrations, then the parts; what has no process any more is started again, what lives is left alone,
and at the end everything stops in the order in which nothing is lost. Domain rules have no place here.
"""

from memory_app.local.stack.folder import Addresses, Folder
from memory_app.local.stack.run import Options, Say, Stack, running

__all__ = ["Addresses", "Folder", "Options", "Say", "Stack", "running"]
