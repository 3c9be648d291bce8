"""Commands that start in copies of a process which has loaded the large libraries.

Loading them takes two seconds and more, most of what many commands of the documents take. What a
copy loads itself is the clone's own code. The commands of README.md start as anybody's do. Linux
only: elsewhere such sockets have no names of this kind.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LIBRARIES = (
    "dp_accounting.pld.privacy_loss_distribution",
    "matplotlib.figure",
    "numba",
    "pandas",
    "pydantic",
    "rich.console",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.base",
    "typer",
)

_CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect("\\0{name}")
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [said], [0, 1, 2])
    sys.exit(int(server.recv(16) or 70))
"""


def start(
    script: Path,
    environment: dict[str, str],
    libraries: Sequence[str] = LIBRARIES,
) -> subprocess.Popen[bytes]:
    """Let a script start in copies of a process, until that is ended; return the process.

    Parameters
    ----------
    script
        Python, run by the interpreter beside it. What takes its place asks for a copy.
    environment
        While libraries load; a copy gets that of its caller.
    libraries
        Which are loaded.
    """
    python, real = script.parent / "python", script.parent / "real" / script.name
    real.parent.mkdir()
    script.rename(real)
    name = f"dprepro-{secrets.token_hex(8)}"
    command = [str(python), __file__, name, str(real), *libraries]
    server = subprocess.Popen(
        command,
        # As `dprepro run` asks for: libraries read it as they are loaded, and never again.
        env=environment | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    script.write_text(_CLIENT.format(python=python, name=name))
    script.chmod(0o755)
    return server


def main(name: str, script: str, *libraries: str) -> None:
    """Load the libraries, then run the script in a copy for everybody who asks."""
    for library in libraries:
        importlib.import_module(library)
    asked = _asked(name)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    said, streams, *_ = socket.recv_fds(asked, 1 << 20, 3)
    arguments, folder, environment = json.loads(said)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[0] = [script, *arguments], str(Path(script).parent)
    status = 1

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        asked.send(b"%d" % status)

    atexit.register(end)  # before the script's own, so it is called after them
    try:
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise


def _asked(name: str) -> socket.socket:
    """Return in a copy of this process, for each that asks."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"\0{name}")  # no file: its path could be too long
    listening.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies
    print("ready", flush=True)
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return asked
        asked.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
