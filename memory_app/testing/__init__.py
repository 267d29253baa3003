"""For tests of what is built on memory_app, and for its own: a provider that can be told to fail, and fakes.

Of the product itself only the demo uses it: its story has a scripted model where the environment names none.
"""

from memory_app.testing.fakes import ScriptedModel
from memory_app.testing.process import StubProcess
from memory_app.testing.script import Mode, Rule
from memory_app.testing.server import StubProvider

__all__ = ["Mode", "Rule", "ScriptedModel", "StubProcess", "StubProvider"]
