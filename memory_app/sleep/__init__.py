"""Sleep: cycles that merge, promote and synthesise what a scope holds, the end of a session, decay, and undo."""
