"""The cache of compiled code on disk.

Whatever happens to its files, a load returns the bytes that were stored, or nothing.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from types import SimpleNamespace

import pytest
from duograph.backend import disk_cache, private_folder
from duograph.cli import main

KEY = disk_cache.key_of("some source", "some flags")
ROOT = hasattr(os, "getuid") and os.getuid() == 0


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Fixture: an empty cache directory for this test alone."""
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DUOGRAPH_CACHE_LIMIT", raising=False)
    monkeypatch.setattr(disk_cache, "_places", {})
    monkeypatch.setattr(disk_cache, "_private", {})
    return tmp_path / "cache"


def python(code, **environment):
    """Run a program in a new process, where warnings are no errors; return (output, errors)."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **{k: str(v) for k, v in environment.items()}},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def entries(place):
    return [p for p in place.glob("??/*") if p.is_file()]


def test_stored_bytes_are_loaded(place):
    assert disk_cache.load(KEY, ".so") is None and disk_cache.read(KEY, ".so") is None
    path = disk_cache.store(KEY, ".so", b"machine code")
    assert path == disk_cache.load(KEY, ".so") and path.read_bytes() == b"machine code"
    assert path.suffix == ".so" and path.is_relative_to(place)
    assert disk_cache.read(KEY, ".so") == b"machine code"
    assert disk_cache.load(KEY, ".txt") is None
    assert disk_cache.load(disk_cache.key_of("other"), ".so") is None
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    disk_cache.store(KEY, ".txt", b"")
    assert disk_cache.read(KEY, ".txt") == b"" and disk_cache.read(KEY, ".so") == b"machine code"


def test_files_are_stored(place, tmp_path):
    """One that lies beside the entries is moved; any other stays where it is."""
    elsewhere = tmp_path / "result.so"
    elsewhere.write_bytes(b"one")
    disk_cache.store(KEY, ".so", elsewhere)
    assert elsewhere.exists() and disk_cache.read(KEY, ".so") == b"one"
    beside = disk_cache.scratch(".bin")
    beside.write_bytes(b"two")
    disk_cache.store(KEY, ".bin", beside)
    assert not beside.exists() and disk_cache.read(KEY, ".bin") == b"two"
    assert sorted(p.name for p in place.iterdir()) == sorted([KEY[:2], "usage"])


def test_keys_of_different_parts_differ():
    """Parts do not run together, and bytes are not their representation."""
    keys = [("ab", "c"), ("a", "bc"), ("abc",), (b"abc", ""), ("1",), ("é",), ("\udc80",)]
    found = {disk_cache.key_of(*parts) for parts in keys}
    assert len(found) == len(keys) and all(len(k) == 64 for k in found)
    assert disk_cache.key_of(1) == disk_cache.key_of("1")


def test_directory_removed_while_in_use_is_made_again(place):
    disk_cache.store(KEY, ".so", b"code")
    for make in (
        lambda: disk_cache.store(KEY, ".so", b"again"),
        lambda: disk_cache.scratch(".so").write_bytes(b"of a compiler"),
    ):
        shutil.rmtree(place)
        assert disk_cache.load(KEY, ".so") is None
        make()
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "longer"])
def test_a_damaged_entry_is_discarded(place, damage):
    data = bytes(range(256)) * 40
    path = disk_cache.store(KEY, ".so", data)
    flipped = bytearray(data)
    flipped[5000] ^= 4
    path.write_bytes(
        {"truncated": data[:-1], "flipped": flipped, "empty": b"", "longer": data + b"x"}[damage]
    )
    assert disk_cache.load(KEY, ".so") is None
    assert not path.exists()
    assert disk_cache.store(KEY, ".so", data) == path
    assert disk_cache.read(KEY, ".so") == data


def test_damaged_entry_does_not_hide_an_intact_one(place):
    """Compilers need not be deterministic: two processes may store different bytes for a key."""
    first = disk_cache.store(KEY, ".so", b"first")
    disk_cache.store(KEY, ".so", b"second")
    first.write_bytes(b"fir")
    for _ in range(2):
        assert disk_cache.read(KEY, ".so") == b"second"


def test_concurrent_processes_store_the_same_key(place):
    code = f"""
        import sys, time
        from duograph.backend import disk_cache, private_folder
        time.sleep(max(0, float(sys.argv[1]) - time.time()))
        for i in range(50):
            disk_cache.store({KEY!r}, ".so", b"code" * 5000)
            assert disk_cache.read({KEY!r}, ".so") == b"code" * 5000
    """
    start = [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(time.time() + 2)]
    running = [subprocess.Popen(start, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for process in running:
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert len(entries(place)) == 1
    assert sorted(p.name for p in place.iterdir()) == sorted([KEY[:2], "usage"])


def test_concurrent_threads_store_and_load(place):
    wrong = []

    def work(number):
        for i in range(30):
            key = disk_cache.key_of(i)
            data = b"%d" % i * 1000
            disk_cache.store(key, ".so", data)
            if disk_cache.read(key, ".so") != data:
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(entries(place)) == 30


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_least_recently_used_entry_is_evicted(place, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", str(10 * 4096))
    keys = [disk_cache.key_of(i) for i in range(10)]
    for i, key in enumerate(keys):
        age(disk_cache.store(key, ".so", bytes(4000)), 1000 - i)
    assert len(entries(place)) == 10
    disk_cache.load(keys[0], ".so")  # used again
    disk_cache.store(disk_cache.key_of("new"), ".so", bytes(4000))
    kept = [k for k in keys if disk_cache.load(k, ".so")]
    assert kept == [keys[0], *keys[3:]]  # a tenth of the limit is free again
    assert disk_cache.info().bytes <= 10 * 4096
    for i in range(100):
        disk_cache.store(disk_cache.key_of("more", i), ".so", bytes(4000))
        assert len(entries(place)) <= 10


def test_entry_larger_than_the_limit_is_returned(place, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", "10000")
    small = disk_cache.store(disk_cache.key_of("small"), ".so", b"x")
    path = disk_cache.store(KEY, ".so", bytes(50_000))
    assert path.exists() and not small.exists()
    disk_cache.store(disk_cache.key_of("next"), ".so", b"y")
    assert not path.exists()


def test_lost_size_count_is_recomputed(place, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", str(10 * 4096))
    for i in range(9):
        age(disk_cache.store(disk_cache.key_of(i), ".so", bytes(4000)), 100)
    (place / "usage").unlink()
    for i in range(4):
        disk_cache.store(disk_cache.key_of("more", i), ".so", bytes(4000))
    assert len(entries(place)) <= 10


def test_limit_of_zero_keeps_no_entries(place, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", "0")
    path = disk_cache.store(KEY, ".so", b"code")
    assert disk_cache.load(KEY, ".so") == path and not path.is_relative_to(place)
    assert not place.exists()


@pytest.mark.parametrize(
    ("limit", "shown"),
    [("1 GB", "got '1 GB'"), ("-1", "got '-1'"), ("9" * 5000, "got '9{30}'[.]{3}"), ("٣x", "got")],
    ids=["words", "negative", "5000 digits", "other digits"],
)
def test_invalid_limit_warns_once(place, monkeypatch, limit, shown):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", limit)
    with pytest.warns(RuntimeWarning, match=f"{shown}; wanted a number of bytes|{shown}"):
        disk_cache.store(KEY, ".so", b"code")
    assert disk_cache.info().limit == 1 << 30
    assert disk_cache.load(KEY, ".so").is_relative_to(place)


def test_abandoned_temporary_files_are_deleted(place, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CACHE_LIMIT", "4096")
    disk_cache.store(KEY, ".so", b"code")
    old, young = disk_cache.scratch(".so"), disk_cache.scratch(".so")
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    age(old, 7200)
    disk_cache.store(disk_cache.key_of("next"), ".so", b"code")
    assert not old.exists() and young.exists()


# ---- what somebody else put there ---------------------------------------------------------------


def replaced(path, make):
    path.unlink()
    make(path)


def give_away(path):
    try:
        os.chown(path, 12345, -1)
    except PermissionError:
        pytest.skip("not even root gives files away here")


NOT_READ = {
    "a named pipe": lambda path: replaced(path, os.mkfifo),
    "a link to a device": lambda path: replaced(path, lambda p: p.symlink_to("/dev/zero")),
    "a link to the same bytes": lambda path: (
        shutil.copy(path, path.parents[2] / "copy"),
        replaced(path, lambda p: p.symlink_to(path.parents[2] / "copy")),
    ),
    "a folder": lambda path: replaced(path, os.mkdir),
    "writable by the group": lambda path: path.chmod(0o620),
    "writable by all": lambda path: path.chmod(0o666),
    "in a folder writable by the group": lambda path: path.parent.chmod(0o770),
    "in a folder writable by all": lambda path: path.parent.chmod(0o777),
    "in a folder that is a link": lambda path: (
        path.parent.rename(path.parents[2] / "moved"),
        path.parent.symlink_to(path.parents[2] / "moved"),
    ),
    "of another user": give_away,
    "in a folder of another user": lambda path: give_away(path.parent),
    "in a root that all may write to by now": lambda path: path.parents[1].chmod(0o777),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_only_own_regular_files_are_read(place, name):
    if "another user" in name and not ROOT:
        pytest.skip("only root gives files away")
    path = disk_cache.store(KEY, ".so", b"code")
    NOT_READ[name](path)
    assert disk_cache.read(KEY, ".so") is None and disk_cache.load(KEY, ".so") is None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        again = disk_cache.store(KEY, ".so", b"own code")
        assert disk_cache.read(KEY, ".so") == b"own code"
    assert bool(said) is not again.is_relative_to(place)
    assert disk_cache.info().entries <= 2
    if "root" in name:
        with pytest.raises(PermissionError, match="others can write to it"):
            disk_cache.clear()
    else:
        disk_cache.clear()
        assert disk_cache.info().entries == 0


def test_nothing_is_deleted_through_links(place, tmp_path):
    path = disk_cache.store(KEY, ".so", b"code")
    elsewhere = path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(elsewhere)
    assert disk_cache.info().entries == 0 and disk_cache.clear() == 0
    assert [p.name for p in elsewhere.iterdir()] == [path.name]


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors have names on Linux only")
def test_checked_path_survives_an_exchange_of_folders(place, tmp_path):
    """Somebody who can change a folder above the cache exchanges it after the check."""
    disk_cache.store(KEY, ".so", b"code")
    with disk_cache.opened(KEY, ".so") as found:
        place.rename(tmp_path / "moved")
        found.path.parent.mkdir(parents=True)
        found.path.write_bytes(b"planted")
        assert pathlib.Path(found.checked_path).read_bytes() == found.data == b"code"


# ---- directories that cannot be used -------------------------------------------------------------


def refused(reason):
    """Store two values; check that one warning comes and both are found outside the directory."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        paths = [disk_cache.store(disk_cache.key_of(i), ".so", b"code") for i in range(2)]
        assert [disk_cache.load(disk_cache.key_of(i), ".so") for i in range(2)] == paths
    assert len(said) == 1 and issubclass(said[0].category, RuntimeWarning)
    assert reason in str(said[0].message)
    assert "not kept for the next process" in str(said[0].message)
    assert stat.S_IMODE(paths[0].parents[1].stat().st_mode) == 0o700
    assert disk_cache.info().problem
    return paths[0]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_directory_writable_by_others_is_refused(place, mode):
    disk_cache.store(KEY, ".so", b"planted")
    place.chmod(mode)
    disk_cache._places.clear()
    path = refused(f"others can write to it (mode {mode:o})")
    assert not path.is_relative_to(place)
    assert disk_cache.load(KEY, ".so") is None


def test_directory_of_another_user_is_refused(place, monkeypatch):
    disk_cache.store(KEY, ".so", b"planted")
    disk_cache._places.clear()
    own = os.getuid()

    def given_away(facts):
        return private_folder.problem_of(SimpleNamespace(st_uid=own + 1, st_mode=facts.st_mode))

    monkeypatch.setattr(disk_cache, "problem_of", given_away)
    refused(f"belongs to user {own + 1}, not to user {own}")
    assert disk_cache.load(KEY, ".so") is None


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
def test_directory_whose_owner_changed_is_refused(place):
    place.mkdir(0o700)
    try:
        os.chown(place, 12345, -1)
    except PermissionError:
        pytest.skip("not even root does here")
    refused("belongs to user 12345")


def test_file_instead_of_a_directory_is_refused(place):
    place.write_text("not a directory")
    refused("cannot be made")
    assert place.read_text() == "not a directory"


def test_missing_home_directory(place, monkeypatch):
    monkeypatch.delenv("DUOGRAPH_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    place.write_text("")
    monkeypatch.setenv("HOME", str(place / "nobody"))
    refused("cannot be made")


def test_full_disk(place):
    """A real limit on the size of files stands for a full disk."""
    out, err = python(
        f"""
        import resource
        from duograph.backend import disk_cache, private_folder
        disk_cache.store({KEY!r}, ".so", b"x" * 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        try:
            disk_cache.store(disk_cache.key_of("big"), ".so", b"x" * 10000)
        except OSError:
            print("refused")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        path = disk_cache.store(disk_cache.key_of("next"), ".so", b"next")
        found = disk_cache.load(disk_cache.key_of("next"), ".so")
        print(found == path, disk_cache.read({KEY!r}, ".so")[:3])
        print(path)
        """
    )
    refused_, both, path = out.splitlines()
    assert refused_ == "refused" and both == "True b'xxx'"
    assert not pathlib.Path(path).is_relative_to(place) and not os.path.exists(path)
    assert err.count("RuntimeWarning") == 1 and "cannot be written (File too large)" in err
    assert len(entries(place)) == 1 and not list(place.glob(".new-*"))


def test_read_only_directory_is_read(place, monkeypatch):
    """As root, permissions forbid nothing, so the error is made."""
    disk_cache.store(KEY, ".so", b"old")
    disk_cache._places.clear()
    place.chmod(0o500)
    if ROOT:
        real = os.open

        def opened(path, flags, *rest, dir_fd=None):
            if flags & os.O_WRONLY and os.path.samestat(os.fstat(dir_fd), place.stat()):
                raise OSError(30, "Read-only file system", path)
            return real(path, flags, *rest, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", opened)
    try:
        refused("cannot be written")
        assert disk_cache.read(KEY, ".so") == b"old"
    finally:
        place.chmod(0o700)


def test_warning_turned_into_an_error_is_raised_once(place):
    place.write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            disk_cache.store(KEY, ".so", b"code")
        assert disk_cache.read(KEY, ".so") is None
        disk_cache.store(KEY, ".so", b"code")
        assert disk_cache.read(KEY, ".so") == b"code"


def test_temporary_directory_is_deleted_with_its_process(place):
    place.write_text("")
    code = f"""
        import os
        from duograph.backend import disk_cache, private_folder
        path = disk_cache.store({KEY!r}, ".so", b"code")
        child = os.fork()
        if child == 0:
            assert disk_cache.load({KEY!r}, ".so") is None
            own = disk_cache.store({KEY!r}, ".so", b"code")
            assert own != path and disk_cache.load({KEY!r}, ".so") == own
            raise SystemExit
        assert os.waitpid(child, 0)[1] == 0
        assert path.exists()
        print(path.parents[1])
    """
    out, _ = python(code)
    assert not os.path.exists(out.splitlines()[-1])


# ---- where ---------------------------------------------------------------------------------------


def test_directory_follows_environment_variables(monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache, "_places", {})
    for name in ("DUOGRAPH_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert disk_cache.info().path == str(tmp_path / "home/.cache/duograph")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk_cache.info().path == str(tmp_path / "home/.cache/duograph")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert disk_cache.info().path == str(tmp_path / "xdg/duograph")
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", "~/own")
    assert disk_cache.info().path == str(tmp_path / "home/own")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", "here")
    assert disk_cache.info().path == str(tmp_path / "here")


@pytest.mark.parametrize("name", ["with spaces", "größe-缓存-🚀", "quote'\"$;", "-flag"])
def test_directory_names_with_special_characters(name, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cache, "_places", {})
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path / name))
    path = disk_cache.store(KEY, ".so", b"code")
    assert disk_cache.load(KEY, ".so") == path and path.is_relative_to(tmp_path / name)


def test_import_is_lazy():
    out, _ = python("import sys, duograph; print('duograph.backend.disk_cache' in sys.modules)")
    assert out == "False\n"


# ---- the command ---------------------------------------------------------------------------------


def test_cache_command(place, capsys):
    disk_cache.store(KEY, ".so", bytes(2048))
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"path     {place}",
        "entries  1",
        "bytes    2048 (2.0 KiB)",
        "limit    1073741824 (1.0 GiB)",
    ]
    foreign = [place / "notes.txt", place / KEY[:2] / "mine.so", place / "ab" / "cd"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not of the cache")
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 1 entry from {place}\n"
    assert all(path.exists() for path in foreign)
    assert disk_cache.load(KEY, ".so") is None
    disk_cache.store(KEY, ".so", b"again")
    assert disk_cache.info().entries == 1


def test_cache_command_on_a_refused_directory(place, capsys):
    place.mkdir(0o700)
    place.chmod(0o777)
    assert main(["cache", "info"]) == 1
    assert "not used: others can write to it (mode 777)" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 1
    assert "others can write to it" in capsys.readouterr().err
