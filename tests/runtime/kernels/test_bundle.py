import fcntl
import os
import re
import signal
import tempfile
import time

import pytest

from dprepro.runtime import kernels
from dprepro.runtime.kernels import _read, sealed
from tests.runtime.kernels.small import USE, SmallPackage

pytestmark = pytest.mark.compiling

ANNOUNCED = f"""
import dprepro.second.caller
from dprepro.runtime.kernels import compile_once
compile_once()
{USE}"""


@pytest.fixture
def small(tmp_path):
    return SmallPackage(tmp_path)


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A package whose kernels are compiled, and what they give."""
    package = SmallPackage(tmp_path_factory.mktemp("warm"))
    out, err = package.run(ANNOUNCED)
    assert re.search(r"compiling \d+ kernels \(once a version\), about \d+ s", err)
    return package, out


def test_cold_and_warm_give_the_same_bits_whatever_is_called_first(small):
    cold, _ = small.run(USE, "totals", "total")
    written = small.files()
    assert {name.partition("-")[2] for name in written} == {"first.bin", "second.bin"}
    warm, said = small.run(ANNOUNCED, "totals", "total")
    other, _ = small.run(USE, "total", "totals")
    assert cold == warm
    assert sorted(cold.splitlines()) == sorted(other.splitlines())
    assert "compiling" not in said
    assert small.files() == written


def test_no_more_is_compiled_than_is_called(small):
    small.run(USE, "total")
    assert [path.name.partition("-")[2] for path in small.bundles()] == ["first.bin"]
    small.run(USE, "totals")
    assert len(small.bundles()) == 2


def test_functions_of_two_groups_never_have_the_same_number(warm):
    """The number is in the name; numba counts from 1 on in every process."""
    found = [re.findall(rb"B\d+v(\d+)B", path.read_bytes()) for path in warm[0].bundles()]
    first, second = ([int(number) for number in numbers] for numbers in found)
    assert 0 < max(first) < min(second)


DAMAGES = {
    "a bit": lambda whole: (
        whole[: len(whole) // 2]
        + bytes([whole[len(whole) // 2] ^ 1])
        + whole[len(whole) // 2 + 1 :]
    ),
    "the last byte": lambda whole: whole[:-1],
    "the checksum": lambda whole: whole[:50],
    "everything": lambda whole: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_none(tmp_path, damage):
    path = tmp_path / "a.bin"
    whole = sealed(b"machine code" * 100)
    path.write_bytes(whole)
    assert _read(path) == b"machine code" * 100
    path.write_bytes(damage(whole))
    assert _read(path) is None


def test_a_damaged_file_is_compiled_anew(warm):
    package, expected = warm
    for file in package.bundles():
        file.write_bytes(DAMAGES["a bit"](file.read_bytes()))
    out, err = package.run(ANNOUNCED)
    assert out == expected
    assert "kernels (once a version)" in err
    assert package.run(ANNOUNCED) == (expected, "")


def test_a_file_that_was_deleted_is_compiled_anew(warm):
    package, expected = warm
    for file in package.bundles():
        file.unlink()
    assert package.run(ANNOUNCED)[0] == expected
    assert len(package.bundles()) == 2


def test_a_change_of_what_a_kernel_calls_reaches_the_caller_in_another_module(small):
    before, _ = small.run(ANNOUNCED)
    small.edit("first/callee.py", "FACTOR = 1.0", "FACTOR = 2.0")
    after, _ = small.run(ANNOUNCED)
    assert after != before
    small.edit("first/callee.py", "FACTOR = 2.0", "FACTOR = 1.0")
    again, said = small.run(ANNOUNCED)
    assert again == before
    assert said == ""  # the earlier bundles are still there
    assert len(small.bundles()) == 4


def test_a_folder_that_cannot_be_written_costs_one_line_and_a_compilation(warm, tmp_path):
    expected = warm[1]
    (tmp_path / "file").write_text("")
    small = SmallPackage(tmp_path / "small")
    child = f"""
import os, subprocess
{USE}
print(os.environ["DPREPRO_KERNELS"])
start = "import sys; sys.path[:] = filter(None, sys.path)\\n"
done = subprocess.run([sys.executable, "-c", start + {USE!r}],
                      capture_output=True, text=True)
print(done.stdout + done.stderr, end="")
"""
    out, err = small.run(child, DPREPRO_CACHE=str(tmp_path / "file" / "cache"))
    first, folder, second = out.splitlines()
    assert f"{first}\n" == f"{second}\n" == expected  # the child used its parent's
    assert err.count("\n") == 1
    assert "cannot be written" in err
    assert "$DPREPRO_CACHE" in err
    assert not os.path.exists(folder)  # noqa: PTH110 - gone with the process


def test_what_lies_in_a_folder_that_cannot_be_written_is_used_all_the_same(tmp_path, monkeypatch):
    """Only what is missing is compiled, also for the processes that this one starts."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    version, compiled = kernels.digest(), []
    (folder / f"{version}-exact.bin").write_bytes(kernels.sealed(b"there before"))

    def compile_group(group):
        compiled.append(group)
        return b"compiled"

    def no_locks(*given, **more):
        raise OSError("read-only file system")

    monkeypatch.setenv(kernels.FOLDER_VARIABLE, str(folder))
    monkeypatch.setattr(kernels, "_compiled", compile_group)
    monkeypatch.setattr("filelock.FileLock", no_locks)
    assert kernels.made(["exact", "ebm"]) == {"exact": b"there before", "ebm": b"compiled"}
    assert os.environ[kernels.FOLDER_VARIABLE] != str(folder)
    assert kernels.made(["exact", "ebm"]) == {"exact": b"there before", "ebm": b"compiled"}
    assert compiled == ["ebm"]


def test_folders_of_killed_processes_go_when_the_next_one_makes_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, alive, foreign = (tmp_path / f"dprepro-kernels-{name}" for name in "abc")
    for folder in (killed, alive, foreign):
        folder.mkdir()
        (folder / "1-ebm.bin").touch()
    (killed / "lock").touch()
    with (alive / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        made = kernels._temporary_folder()
        again = kernels._temporary_folder()
    assert set(tmp_path.iterdir()) == {alive, foreign, made, again}


def test_a_folder_whose_lock_cannot_be_made_does_not_stay(tmp_path, monkeypatch):
    real = os.open

    def full(path, *given, **more):
        if str(path).endswith("lock"):
            raise OSError(28, "no room")
        return real(path, *given, **more)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(OSError, match="no room"):
            kernels._temporary_folder()
    assert not list(tmp_path.iterdir())


def test_two_processes_that_start_cold_compile_once(small, warm):
    processes = [small.start(ANNOUNCED) for _ in range(3)]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert {out for out, _ in outputs} == {warm[1]}
    assert sum(err.count("compiling") for _, err in outputs) == 1
    assert len(small.bundles()) == 2


def test_a_run_that_is_killed_as_it_compiles_leaves_nothing_in_the_way(small, warm):
    process = small.start(ANNOUNCED)
    deadline = time.monotonic() + 100
    while not [*(small.cache / "kernels").glob("*.lock")] and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not small.bundles()
    assert small.run()[0] == warm[1]
    assert len(small.bundles()) == 1


def test_a_compiler_ends_with_the_run_that_wants_the_code(small):
    """Compilers tell their numbers, and would go on for minutes."""
    small.edit(
        "runtime/kernels.py",
        "    building = True",
        """    import time
    open(f"number-{os.getpid()}", "w").close()
    for _ in range(3000):
        time.sleep(0.1)
    building = True""",
    )
    process = small.start(ANNOUNCED)
    while len(numbers := [*small.folder.glob("number-*")]) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    compilers = [int(path.name.partition("-")[2]) for path in numbers]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    deadline = time.monotonic() + 5
    while any(map(is_alive, compilers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, compilers))


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_a_kill_left_of_a_bundle_goes_with_the_next_compilation(small, warm):
    folder = small.cache / "kernels"
    folder.mkdir(parents=True)
    left = [
        folder / f".{version}-second.bin.0000000{k}.part" for k, version in enumerate(("a", "b"))
    ]
    of_others = folder / ".a-other_second.bin.00000002.part"  # somebody may be writing it
    for path in (*left, of_others):
        path.write_bytes(b"half")
    assert small.run()[0] == warm[1]
    assert [*folder.glob(".*.part")] == [of_others]


def test_old_bundles_go_and_the_last_used_ones_stay(warm):
    package, expected = warm
    bundles = package.bundles()
    others = [bundles[0].with_name(f"{n}-first.bin") for n in range(6)]
    for age, other in enumerate(others):
        other.write_bytes(b"")
        os.utime(other, (1e9 - age, 1e9 - age))
    bundles[1].write_bytes(b"")  # makes it compile, and so look around
    assert package.run()[0] == expected
    assert set(package.bundles()) == {*bundles, *others[:3]}
    for other in others[:3]:
        other.unlink()


def test_compilers_do_not_import_from_the_working_directory(small):
    for name in ("random", "numpy", "pickle", "numba", "dprepro"):
        (small.folder / f"{name}.py").write_text(
            f"open('ran-{name}', 'w').close()\nraise ImportError('planted {name}')\n"
        )
    small.run()
    assert len(small.bundles()) == 1
    assert not list(small.folder.glob("ran-*"))


def test_what_cannot_be_compiled_is_one_clear_error(small):
    small.edit("first/callee.py", "return 2 * value", "return value.nothing")
    code = f"""
from dprepro.runtime.errors import DpreproError
try:
    exec({USE!r})
except DpreproError as error:
    print(error)
"""
    out, _ = small.run(code)
    assert out.startswith("the kernels cannot be compiled: ")
    assert not small.bundles()
