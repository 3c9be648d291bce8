"""Machine code from Python: the decorator `kernel`, and the files that keep what was compiled.

Numeric modules use `kernel` in the place of ``numba.njit``. The process that computes loads machine
code, and never makes any.

Why: an object file carries a copy of each function that it calls, and the linker takes the copy
that came first into the process. So a process that has compiled a callee for itself runs another
copy than one that found everything in a cache: with fast-math, other bits. Here all kernels of a
group are compiled by one process that does nothing else (`compile_group`), every process loads all
of them, in one order, and no two groups have a numbered name in common.

The files, one a group, are found, checked, or made by a process of their own. They are unpickled,
which runs code, so nobody else may be able to write them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import itertools
import math
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeVar, cast

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import lock_open_file, replacing

__all__ = ["compile_once", "kernel", "kernel_modules", "prepare"]

Function = TypeVar("Function", bound=Callable[..., Any])

building = False
"""Whether this process compiles: `compile_modules` sets it before it imports kernels."""

_registered: dict[str, tuple[Any, tuple[str, ...]]] = {}
_loading = threading.RLock()
_loaded: set[str] = set()


def kernel(*signatures: str, **options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba, once a machine; numba itself is imported by the first call.

    Parameters
    ----------
    *signatures
        What Python calls it with: argument types as numba writes them, such as
        ``"(float32[::1], int64)"``. ``const(...)`` around an array takes what is read-only as well,
        ``[:]`` instead of ``[::1]`` any strides. A kernel that only other kernels call needs none.
    **options
        Those of ``numba.njit``, such as ``fastmath``; ``nogil`` is set.

    Returns
    -------
    callable
        Calls raise TypeError for other types of arguments, and DpreproError if the kernels cannot
        be compiled.
    """

    def decorate(function: Function) -> Function:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return function
        name = f"{function.__module__}:{function.__qualname__}"
        made: Any
        if building:  # without the wrapper for Python where only other kernels call
            made = _dispatcher(function, {**options, "no_cpython_wrapper": not signatures})
        else:
            made = Kernel(name, function, options)
        _registered[name] = (made, signatures)
        return cast(Function, made)

    return decorate


def registered() -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return kernels and their signatures by ``module:name``, of the modules imported so far."""
    return dict(_registered)


def compile_once() -> None:
    """Compile the kernels of the modules imported so far where this machine has not; load none.

    Says so before it compiles.

    Raises
    ------
    DpreproError
        If they cannot be compiled.
    """

    made(_groups(), announce=True)


def prepare() -> None:
    """Load the kernels of the modules imported so far; else the first call of a kernel does it.

    Raises
    ------
    DpreproError
        If this machine has not compiled them, and cannot.
    """

    with _loading:
        for group, content in made(_groups() - _loaded).items():
            _take(group, content)


def _groups() -> set[str]:
    """Return the groups of the modules imported so far."""

    return {group_of(name.partition(":")[0]) for name in _registered}


def _take(group: str, content: bytes) -> None:
    """Load the kernels of a group, all of them, given its bundle's content."""
    code = load(content)
    for module in kernel_modules():
        if group_of(module) == group:
            importlib.import_module(module)
    for name, compiled in code:
        _registered[name][0].take(compiled)
    _loaded.add(group)


class Kernel:
    """A compiled function, loaded by its first call. `py_func` is the function as written."""

    def __init__(self, name: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.py_func = function
        self.run: Any = None
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        if self.run is None:
            with _loading:
                group = group_of(self.py_func.__module__)
                if group not in _loaded:
                    _take(group, made([group])[group])
            self.close()
        try:
            return self.run(*arguments)
        except TypeError as error:
            if "No matching definition" not in str(error):
                raise
            raise TypeError(
                f"{self.name} is not compiled for these arguments ({error}), only for "
                f"{', '.join(_registered[self.name][1])}; add theirs to its @kernel(...)"
            ) from None

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def take(self, compiled: Any) -> None:
        """Take over machine code for one signature, as `dprepro.runtime.kernels` wrote it.

        numba does the same with what comes from its own cache.
        """
        from numba.core.compiler import CompileResult

        if self._dispatcher is None:
            self._dispatcher = _dispatcher(self.py_func, self._options)
        target = self._dispatcher.targetctx
        target.refresh()
        result = CompileResult._rebuild(target, *compiled)
        fields = result._asdict()
        target.insert_user_function(fields["entry_point"], fields["fndesc"], [fields["library"]])
        self._dispatcher.add_overload(result)

    def close(self) -> None:
        """Refuse other signatures from now on; compiling them would change what is linked."""
        if self._dispatcher is None:
            self.run = self._refuse
        else:
            self._dispatcher.disable_compile()
            self.run = self._dispatcher

    def _refuse(self, *arguments: Any) -> Any:
        from numba import typeof

        given = ", ".join(str(typeof(argument)) for argument in arguments)
        raise TypeError(
            f"{self.name} is compiled for calls from other kernels only, and was called with "
            f"({given}); name these types in its @kernel(...)"
        )


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    from numba import njit

    # Without the wrapper for C, which nobody calls.
    return njit(nogil=True, no_cfunc_wrapper=True, **options)(function)


PACKAGE = Path(__file__).resolve().parent.parent

# A regular expression that begins with a text is looked for four times as fast as one with ^.
_DECORATED = re.compile(r"\nfrom dprepro\.runtime\.kernels import (.*\b)?kernel\b")
_KERNEL = re.compile(r"^@kernel\b", re.MULTILINE)
_IRRELEVANT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
_COMPILED_WITH = {
    "additive": "sampling",
    "runtime": "sampling",
    "rows": "sampling",
    "locally_linear": "dpboost",
}
"""Small packages that have no group of their own, with the group that they belong to."""


@lru_cache
def kernel_modules(package: Path = PACKAGE) -> tuple[str, ...]:
    """Return the names of the modules that import the decorator, sorted."""
    names = (
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        for path in _sources(package)
    )
    return tuple(sorted(names))


def number_of_kernels(groups: Collection[str], package: Path = PACKAGE) -> int:
    """Return how many functions of these groups are compiled."""
    texts = (
        path.read_text(encoding="utf-8")
        for path, module in zip(_sources(package), kernel_modules(package), strict=True)
        if group_of(module) in groups
    )
    return sum(len(_KERNEL.findall(text)) for text in texts)


def group_of(module: str) -> str:
    """Return the group of a module with kernels: they are compiled together, and loaded together.

    A group is a method or a package, so that a run compiles no more than its methods use.
    """
    parts = module.split(".")
    package = parts[2] if parts[1] in ("methods", "privacy") else parts[1]
    return _COMPILED_WITH.get(package, package)


def digest(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of what the machine code depends on, as hex digits.

    The text of every module with kernels, this module's, the versions of Python, numba, LLVM and
    numpy, the processor that numba compiles for, and numba's settings. Nothing of numba is
    imported, which takes longer than all the rest.
    """
    settings = Path(".numba_config.yaml")
    parts = [
        sys.version,
        *(f"{name} {importlib.metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")),
        *_processor(),
        settings.read_text(encoding="utf-8") if settings.is_file() else "",
        repr(sorted(i for i in os.environ.items() if _matters(i[0]))),
    ]
    own = {package / "runtime" / f"{name}.py" for name in ("kernels", "atomics")}
    for path in sorted({*_sources(package), *own}):
        text = path.read_bytes()
        parts.append(f"{path.relative_to(package).as_posix()} {hashlib.sha256(text).hexdigest()}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _processor() -> tuple[str, str, str]:
    """Return LLVM's triple, the processor's name and its features, as in numba's own key."""
    from llvmlite import binding

    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # a processor of which LLVM knows none
        features = ""
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def _sources(package: Path) -> list[Path]:
    paths = sorted(package.rglob("*.py"))
    texts = (f"\n{path.read_text(encoding='utf-8')}" for path in paths)
    return [path for path, text in zip(paths, texts, strict=True) if _DECORATED.search(text)]


def _matters(variable: str) -> bool:
    return variable.startswith("NUMBA_") and variable not in _IRRELEVANT


def why_not(path: Path) -> str:
    """Return why somebody else may have written what is at a path; empty if nobody else can.

    A file, and each folder above it, must belong to this user or to root, and nobody else may write
    there. Folders in which everybody may write, but delete nothing of others (/tmp), are trusted
    for what belongs to this user. What does not exist is not asked about. On Windows, where files
    have no such owner, the answer is always empty.
    """
    if not hasattr(os, "geteuid"):
        return ""
    whole = path.absolute()
    real = whole.resolve()
    # Links on the way count, too: whoever may replace one says what is read.
    for place in dict.fromkeys([whole, *whole.parents, real, *real.parents]):
        try:
            found = place.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"{place} cannot be looked at: {error.strerror}"
        if found.st_uid not in (os.geteuid(), 0):
            return f"{place} belongs to another user"
        if _others_write(found) and not (stat.S_ISDIR(found.st_mode) and _is_sticky(found)):
            return f"others may write to {place} (chmod go-w)"
    return ""


def _is_sticky(found: os.stat_result) -> bool:
    return bool(found.st_mode & stat.S_ISVTX)


def _others_write(found: os.stat_result) -> bool:
    by_group = bool(found.st_mode & stat.S_IWGRP) and not _is_own_group(found.st_gid)
    return by_group or bool(found.st_mode & stat.S_IWOTH)


def _is_own_group(group: int) -> bool:
    """Whether a group has this user alone, as some systems make one for each user."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


FOLDER_VARIABLE = "DPREPRO_KERNELS"
"""Names the folder of bundles; set for the processes that this one starts."""

KEPT = 4
"""Versions of which the bundles stay in the folder, the last used ones."""

USUAL_SECONDS = 20
"""How long a group takes; two at a time take as long."""

_LONGEST_WAIT = 900.0
_TEMPORARY = "dprepro-kernels-"
_MAGIC = b"dprepro kernels 1\n"


def load(content: bytes) -> list[tuple[str, Any]]:
    """Return a group's machine code, given its bundle's content.

    Returns
    -------
    list of (str, tuple)
        ``module:name`` of a kernel and what numba makes of one of its signatures, in load order.
    """
    from numba.core import serialize  # noqa: F401 - the pickles name its functions

    return [(kernel, pickle.loads(compiled)) for kernel, compiled in pickle.loads(content)]


def made(groups: Collection[str], announce: bool = False) -> dict[str, bytes]:
    """Return the content of the groups' bundles, compiled first where this machine has none.

    They are in the order of the groups' names, in which all processes load them.
    """
    if not groups:
        return {}
    version = digest()
    folder = _folder()
    if reason := why_not(folder):
        folder = _make_for_now(version, sorted(groups), folder, f"is not safe: {reason}")
    found = {group: _read(folder / _name(version, group)) for group in sorted(groups)}
    missing = [group for group, content in found.items() if content is None]
    if missing:
        found.update(_make(folder, version, missing, announce))
    return {group: _whole(content, folder) for group, content in found.items()}


def _name(version: str, group: str) -> str:
    return f"{version}-{group}.bin"


def _whole(content: bytes | None, folder: Path) -> bytes:
    if content is None:
        raise DpreproError(f"the kernels in {folder} were damaged as they were written; try again")
    return content


def sealed(content: bytes) -> bytes:
    """Put a checksum in front, which `_read` asks for."""
    return _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _read(path: Path) -> bytes | None:
    """Return the content of a bundle, or None where there is none that is whole and safe."""
    if why_not(path):
        return None
    try:
        given = path.read_bytes()
    except OSError:
        return None
    content = given[len(_MAGIC) + 65 :]
    if given != sealed(content):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used: `_prune` keeps it
    return content


def _folder() -> Path:
    from dprepro.runtime.files import cache_dir

    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else cache_dir() / "kernels"


def _make(folder: Path, version: str, groups: list[str], announce: bool) -> dict[str, bytes | None]:
    """Compile under the groups' locks, or into a temporary folder where this one is no use."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with ExitStack() as locks:
            for group in groups:  # in the order of the alphabet: two processes never wait in a ring
                locks.enter_context(FileLock(folder / f"{group}.lock", timeout=_LONGEST_WAIT))
            # Another process may have made some in the meantime.
            missing = [group for group in groups if _read(folder / _name(version, group)) is None]
            if missing:
                _remove_parts(folder, missing)
                number, seconds = number_of_kernels(missing), _seconds(missing)
                _say(f"compiling {number} kernels (once a version), about {seconds} s", announce)
                _compile(folder, version, missing)
            _prune(folder)
    except Timeout:
        raise DpreproError(
            f"another process has been compiling kernels in {folder} for {_LONGEST_WAIT:g} s; end "
            "it, or name another folder in $DPREPRO_CACHE"
        ) from None
    except (OSError, NotImplementedError) as error:
        # filelock raises NotImplementedError where the file system has no locks.
        folder = _make_for_now(version, groups, folder, f"cannot be written ({error})")
    return {group: _read(folder / _name(version, group)) for group in groups}


def _make_for_now(version: str, groups: list[str], folder: Path, reason: str) -> Path:
    _say(
        f"the cache folder {folder} {reason}: compiling the kernels for this run only, about "
        f"{_seconds(groups)} s; $DPREPRO_CACHE names another folder",
        announce=True,
    )
    try:
        made = _temporary_folder()
        for path in folder.glob(f"{version}-*.bin"):  # of other groups, which are looked for there
            with contextlib.suppress(OSError):  # then it is compiled like the rest
                if (content := _read(path)) is not None:
                    (made / path.name).write_bytes(sealed(content))
        if unsafe := why_not(made):
            raise DpreproError(
                f"no folder is safe for the compiled kernels: {folder} {reason}, and {unsafe}; "
                "name one of your own in $DPREPRO_CACHE"
            )
        _compile(made, version, groups)
    except OSError as error:
        raise DpreproError(
            f"no folder can be written to for the compiled kernels, neither {folder} (it {reason}) "
            f"nor a temporary one ({error}); name one in $DPREPRO_CACHE"
        ) from None
    os.environ[FOLDER_VARIABLE] = str(made)  # for the processes that this one starts
    return made


def _temporary_folder() -> Path:
    """Make a folder that goes with this process, and remove those of killed ones. May be OSError.

    The process that made a folder, and its forks, lock a file in it.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError):
            number = os.open(left / "lock", os.O_RDWR)
            if lock_open_file(number):
                shutil.rmtree(left, ignore_errors=True)
            os.close(number)
    made, number = Path(tempfile.mkdtemp(prefix=f".{_TEMPORARY}")), -1
    try:
        number = os.open(made / "lock", os.O_RDWR | os.O_CREAT)
        if lock_open_file(number):  # it stays open as long as this process
            made = made.rename(made.with_name(made.name[1:]))  # now others see it, and the lock
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        if number >= 0:
            os.close(number)
        raise
    atexit.register(_remove, made, os.getpid())
    return made


def _seconds(groups: list[str]) -> int:
    return USUAL_SECONDS * math.ceil(len(groups) / 2)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_parts(folder: Path, groups: list[str]) -> None:
    """Remove what a killed process has written of a bundle; only who has the lock writes one."""
    for group in groups:
        for part in folder.glob(f".*-{group}.bin.*.part"):
            part.unlink(missing_ok=True)


def _compile(folder: Path, version: str, groups: list[str]) -> None:
    """Compile two groups at a time, and write the bundle of each.

    A bundle appears complete, or not at all: OSError if it cannot be written.
    """
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(_compile_group, folder, version), groups))


def _compile_group(folder: Path, version: str, group: str) -> None:
    compiled = _compiled(group)
    # Whatever the umask: what others may write is not read.
    with replacing(folder / _name(version, group), 0o600) as part:
        part.write_bytes(sealed(compiled))


def _compiled(group: str) -> bytes:
    """Run `dprepro.runtime.kernels` in a process of its own, and return what it writes."""
    # Modules come from where this process found its own, never from the working directory: with -c
    # that one is the first entry, and is taken out before anything is imported.
    path = [entry for entry in sys.path if entry] + [str(PACKAGE.parent)]
    modules = [name for name in kernel_modules() if group_of(name) == group]
    place = sorted({group_of(name) for name in kernel_modules()}).index(group)
    # Collecting garbage would be a tenth of the time of a process that soon ends.
    code = (
        f"import gc, sys; gc.disable(); sys.path[:] = {path!r}; "
        f"from dprepro.runtime.kernels import compile_group as main; main({place}, {modules!r})"
    )
    # Nothing is written into the pipe. It ends with this process, however that ends, and so does
    # the other one.
    reading, writing = os.pipe()
    with os.fdopen(reading) as until, os.fdopen(writing, "w"):
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=until, capture_output=True, check=False
        )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit code {done.returncode}"
        raise DpreproError(
            f"the kernels cannot be compiled: {reason}. Is this numba made for this Python and "
            "numpy? `pip install --upgrade numba` brings one that fits"
        )
    return done.stdout


def _prune(folder: Path) -> None:
    """Remove bundles that were not used lately."""
    with contextlib.suppress(OSError):
        bundles = sorted(folder.glob("*.bin"), key=lambda path: path.name)
        versions = [list(paths) for _, paths in groupby(bundles, _version)]
        versions.sort(key=lambda paths: max(map(_used, paths)), reverse=True)
        for path in chain.from_iterable(versions[KEPT:]):
            path.unlink(missing_ok=True)


def _version(bundle: Path) -> str:
    return bundle.name.partition("-")[0]


def _used(path: Path) -> float:
    return path.stat().st_mtime


def _say(text: str, announce: bool) -> None:
    if announce or sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


_NAMES = 500_000
"""More functions than one process compiles."""


def compile_group(place: int, modules: Sequence[str]) -> None:
    """Write the machine code of a group's kernels, those in `modules`, to standard output.

    `place` is the group's among all groups, from 0 on. This process ends when its standard input
    does: nobody wants the code any more.
    """
    threading.Thread(target=_end_with_input, daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever a library prints stays out of it
        _name_apart(place)
        pickle.dump(compile_modules(modules), out)


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _name_apart(place: int) -> None:
    """Let no function of this process have the name in machine code of one of another group's.

    numba numbers functions, and writes the number into the name. The linker takes the copy of a
    name that came first, so what groups with a name in common compute would depend on which was
    loaded first. Here each group has numbers of its own.
    """
    from numba.core.bytecode import FunctionIdentity

    deque(itertools.islice(FunctionIdentity._unique_ids, place * _NAMES), maxlen=0)


def compile_modules(modules: Sequence[str]) -> list[tuple[str, bytes]]:
    """Compile every signature of every kernel, in the order of modules and of their lines.

    Turns this process into one that compiles: to be called in a process of its own.

    Returns
    -------
    list of (str, bytes)
        ``module:name``, and the pickled machine code for one signature.
    """
    global building
    building = True
    for package in sorted({module.rpartition(".")[0] for module in modules}):
        _enter(package)
    for module in modules:
        importlib.import_module(module)
    # In the order of the source, whatever imported what.
    made = sorted(
        (_place_of(name, it), name, it, texts) for name, (it, texts) in _registered_in(modules)
    )
    results = []
    for _, name, dispatcher, texts in made:
        for text in texts:
            arguments = argument_types(text)
            dispatcher.compile(arguments)
            results.append((name, dispatcher.overloads[arguments]))
    return [(name, _reduced(result)) for name, result in results]


def _enter(package: str) -> None:
    """Let modules of a package be imported without its ``__init__``, which loads estimators."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    sys.modules.setdefault(package, importlib.util.module_from_spec(spec))


def argument_types(text: str) -> tuple[Any, ...]:
    """Return the numba types that a signature names; see `dprepro.runtime.kernels.kernel`."""
    from numba import types

    names = {**vars(types), "const": lambda array: array.copy(readonly=True)}
    # The text is that of our own decorators.
    found = eval(text, {"__builtins__": {}}, names)
    return found if isinstance(found, tuple) else (found,)


def _registered_in(modules: Sequence[str]) -> list[tuple[str, tuple[Any, tuple[str, ...]]]]:
    return [(n, entry) for n, entry in registered().items() if n.split(":")[0] in modules]


def _place_of(name: str, dispatcher: Any) -> tuple[str, int]:
    return name.partition(":")[0], dispatcher.py_func.__code__.co_firstlineno


def _reduced(result: Any) -> bytes:
    """Return the machine code of one signature as bytes, pickled by numba's own pickler."""
    from numba.core import serialize

    fields = result._asdict()
    if fields["lifted"] or fields["library"].has_dynamic_globals:
        raise ValueError(f"{result.fndesc.qualname}: machine code with addresses of this process")
    return bytes(serialize.dumps(result._reduce()))
