from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.paths import Paths
from ganeti.storage import file_paths
from ganeti.storage.interface import Environment


@pytest.fixture
def env(tmp_path: Path, root: Path) -> Environment:
    return Environment(paths=Paths(tmp_path / "node"), file_roots=(root,))


def test_the_list_of_directories(tmp_path: Path) -> None:
    text = "# disks of guests\n\n/srv/ganeti/file-storage/\n  /mnt/fast  \n/mnt/fast\n"
    assert file_paths.parse_allowed(text) == (Path("/srv/ganeti/file-storage"), Path("/mnt/fast"))


@pytest.mark.parametrize("line", ["srv/disks", "/srv/../etc", "/srv//disks", "/srv/\0disks", "~/x"])
def test_a_wrong_line_is_named(line: str) -> None:
    with pytest.raises(errors.FileStoragePathError, match="allowed line 2"):
        file_paths.parse_allowed(f"/mnt/good\n{line}\n", "allowed")


def test_the_file_of_the_node(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert file_paths.load_allowed(paths) is None
    paths.conf.mkdir(parents=True)
    paths.file_storage_paths.write_text("/mnt/fast\n")
    assert file_paths.load_allowed(paths) == (Path("/mnt/fast"),)
    paths.file_storage_paths.write_bytes(b"/mnt/\xff\n")
    with pytest.raises(errors.FileStoragePathError, match="file-storage-paths"):
        file_paths.load_allowed(paths)


def test_a_path_below_an_allowed_directory(env: Environment, root: Path) -> None:
    assert file_paths.check_path(f"{root}/web1/a.file.disk0", env) == f"{root}/web1/a.file.disk0"


@pytest.mark.parametrize(
    "path",
    [
        "{root}/../outside",
        "{root}/web1/../../outside",
        "{root}/./web1",
        "{root}//web1",
        "/{root}/web1",
        "{root}/web1/",
        "{root}",
        "{root}/",
        "{root}-other/web1",
        "web1/disk0",
        "",
        ".",
        "/",
        "/etc/passwd",
        "{root}/web1\0/etc/passwd",
        "{root}/web1\nx",
        "{root}/web1\x1b[2J",
        "{root}/\ud800",
    ],
)
def test_attacks_by_text(env: Environment, root: Path, path: str) -> None:
    with pytest.raises(errors.FileStoragePathError) as caught:
        file_paths.check_path(path.format(root=root), env)
    assert str(caught.value).isprintable()


def test_a_link_out_of_the_directory(env: Environment, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "web1").symlink_to(outside)
    with pytest.raises(errors.FileStoragePathError, match="outside"):
        file_paths.check_path(f"{root}/web1/disk0", env)
    (root / "web2").symlink_to("/etc")
    with pytest.raises(errors.FileStoragePathError):
        file_paths.check_path(f"{root}/web2/passwd", env)


def test_links_inside_and_to_the_directory_are_followed(tmp_path: Path, root: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (root / "real").mkdir()
    (root / "alias").symlink_to("real")
    env = Environment(paths=Paths(tmp_path / "node"), file_roots=(tmp_path / "link",))
    for name in (f"{tmp_path}/link/alias/disk0", f"{root}/alias/disk0"):
        assert file_paths.check_path(name, env) == f"{root}/real/disk0"


def test_a_directory_that_becomes_a_link_meanwhile(
    env: Environment, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "web1").mkdir()
    check = file_paths._split

    def swap(path: str, environment: Environment) -> tuple[str, str]:
        found = check(path, environment)
        (root / "web1").rmdir()
        (root / "web1").symlink_to(outside)
        return found

    monkeypatch.setattr(file_paths, "_split", swap)
    with (
        pytest.raises(errors.FileStoragePathError, match="link"),
        file_paths.open_parent(f"{root}/web1/disk0", env, create=True),
    ):
        pass
    assert list(outside.iterdir()) == []


def test_without_allowed_directories_the_cure_is_told(tmp_path: Path) -> None:
    env = Environment(paths=Paths(tmp_path))
    with pytest.raises(errors.FileStoragePathError, match="etc/ganeti/file-storage-paths"):
        file_paths.check_path("/mnt/disks/web1/disk0", env)


@pytest.mark.parametrize(
    "directory",
    [
        "/",
        "/bin",
        "/boot/disks",
        "/dev/shm",
        "/etc",
        "/etc/ganeti",
        "/home/joe/disks",
        "/lib",
        "/lib64/x",
        "/proc/1",
        "/root",
        "/run/x",
        "/sbin",
        "/srv",
        "/sys/fs",
        "/tmp",
        "/usr/local/disks",
        "/var",
        "/var/lib",
        "/var/lib/ganeti/queue",
        "/var/log",
        "/var/run/ganeti",
    ],
)
def test_system_directories_are_refused_even_when_listed(directory: str, tmp_path: Path) -> None:
    for base in (Path("/"), tmp_path):
        paths = Paths(base)
        place = str(paths.under(directory))
        env = Environment(paths=paths, file_roots=(Path(place),))
        assert file_paths.root_problem(place, paths)
        with pytest.raises(errors.FileStoragePathError, match="system"):
            file_paths.check_path(f"{place.rstrip('/')}/disk0", env)
        with pytest.raises(errors.FileStoragePathError, match="system"):
            file_paths.check_root(place, env)


@pytest.mark.parametrize(
    "directory",
    ["/srv/ganeti/file-storage", "/var/lib/images", "/mnt/fast", "/data", "/opt/vm", "/library"],
)
def test_ordinary_directories_are_fine(directory: str, tmp_path: Path) -> None:
    assert file_paths.root_problem(directory, Paths(Path("/"))) is None
    assert file_paths.root_problem(f"{tmp_path}{directory}", Paths(tmp_path)) is None


def test_a_system_directory_below_an_allowed_one(tmp_path: Path) -> None:
    """An allowed directory does not open the system directories that lie in it."""
    env = Environment(paths=Paths(Path("/")), file_roots=(Path("/var/lib/images"), Path("/var")))
    with pytest.raises(errors.FileStoragePathError):
        file_paths.check_path("/var/log/web1", env)


def test_a_directory_that_everybody_can_write(env: Environment, root: Path) -> None:
    root.chmod(0o1777)
    with pytest.raises(errors.FileStoragePathError, match="everybody"):
        file_paths.check_path(f"{root}/web1/disk0", env)
    assert "everybody" in str(file_paths.root_problem(root, env.paths))


def test_check_root(env: Environment, root: Path, tmp_path: Path) -> None:
    file_paths.check_root(root, env)
    file_paths.check_root(root / "team", env)
    with pytest.raises(errors.FileStoragePathError, match="outside"):
        file_paths.check_root(tmp_path / "other", env)
    (tmp_path / "file").touch()
    assert "not a directory" in str(file_paths.root_problem(tmp_path / "file", env.paths))


def test_directories_of_instances(env: Environment, root: Path) -> None:
    file_paths.create_directory(f"{root}/team/web1", env)
    file_paths.create_directory(f"{root}/team/web1", env)
    assert (root / "team" / "web1").stat().st_mode & 0o7777 == 0o750
    file_paths.rename_directory(f"{root}/team/web1", f"{root}/team/web2", env)
    file_paths.rename_directory(f"{root}/team/web1", f"{root}/team/web2", env)
    assert os.listdir(root / "team") == ["web2"]
    (root / "team" / "web2" / "disk0").touch()
    with pytest.raises(errors.BlockDeviceError, match="not empty"):
        file_paths.remove_directory(f"{root}/team/web2", env)
    (root / "team" / "web2" / "disk0").unlink()
    file_paths.remove_directory(f"{root}/team/web2", env)
    file_paths.remove_directory(f"{root}/team/web2", env)
    with pytest.raises(errors.BlockDeviceError, match="rename"):
        file_paths.rename_directory(f"{root}/team/web1", f"{root}/team/web2", env)


def test_directories_outside_are_left_alone(env: Environment, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for action in (file_paths.create_directory, file_paths.remove_directory):
        with pytest.raises(errors.FileStoragePathError):
            action(str(outside), env)
    for old, new in ((outside, root / "x"), (root / "x", outside)):
        with pytest.raises(errors.FileStoragePathError):
            file_paths.rename_directory(str(old), str(new), env)
    assert outside.is_dir()


def test_the_allowed_directory_is_made_on_use(tmp_path: Path) -> None:
    root = tmp_path / "srv" / "disks"
    env = Environment(paths=Paths(tmp_path / "node"), file_roots=(root,))
    file_paths.create_directory(f"{root}/web1", env)
    assert root.stat().st_mode & 0o7777 == 0o750
