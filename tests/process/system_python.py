"""system_python: the interpreter that has the clients' packages, whichever `python3` comes first in the PATH."""
import importlib.util
import os
import sys

PATH = "/usr/bin/python3"  # as scripts/test chooses it; scripts/deps installs for it


def use():
    """Begins the program anew with it if this one lacks them."""
    if importlib.util.find_spec("confluent_kafka") is None and sys.executable != PATH and os.access(PATH, os.X_OK):
        os.execv(PATH, [PATH, *sys.argv])
