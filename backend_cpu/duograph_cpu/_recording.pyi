"""Types of the C extension that native/python/recording.c defines."""

from duograph.backend.observers import State, Work
from duograph.backend.prepared import HandleFunction

def watched_call(
    state: State, run: HandleFunction, work: Work, otherwise: HandleFunction, /
) -> HandleFunction: ...
