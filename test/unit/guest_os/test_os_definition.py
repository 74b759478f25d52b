from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from needs import needs_root

from ganeti import errors
from ganeti.guest_os import definition
from ganeti.paths import Paths

MakeOs = Callable[..., Path]


def reason(paths: Paths) -> str:
    """The defects of the only definition; it must not be loadable either."""
    (found,) = definition.diagnose(paths.os_search_path)
    assert not found.valid
    with pytest.raises(errors.OpPrereqError) as caught:
        definition.load(found.name, paths.os_search_path)
    assert caught.value.args[1] == "wrong_state"
    assert found.diagnose in str(caught.value.args[0])
    return found.diagnose


def test_a_good_definition(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (found,) = definition.diagnose(paths.os_search_path)
    assert (found.name, found.path, found.valid, found.diagnose) == ("tiny", str(path), True, "")
    assert found.variants == ["small", "large"]
    assert found.parameters == [("size", "How large it gets"), ("disk-label", "Its label")]
    assert (found.api_versions, found.trusted) == ([20, 15], True)
    loaded = definition.load("tiny+large", paths.os_search_path)
    assert (loaded.path, loaded.variant, loaded.api_version) == (path, "large", 20)
    assert loaded.full_name == "tiny+large"
    assert loaded.script("create") == path / "create"


def test_the_first_directory_wins_and_all_are_listed(paths: Paths, make_os: MakeOs) -> None:
    late, first, other = make_os(place=3), make_os(place=1), make_os("aaa", place=3)
    (first / "create").chmod(0o644)
    found = definition.diagnose(paths.os_search_path)
    assert [(item.path, item.valid) for item in found] == [
        (str(first), False),
        (str(other), True),
        (str(late), True),
    ]
    assert definition.find("tiny", paths.os_search_path) == first
    with pytest.raises(errors.OpPrereqError, match=r"usr/local.*not executable"):
        definition.load("tiny", paths.os_search_path)


def test_files_and_hidden_names_are_no_definitions(paths: Paths, make_os: MakeOs) -> None:
    make_os(".hidden")
    (paths.os_search_path[0] / "README").touch()
    assert definition.diagnose(paths.os_search_path) == []
    assert definition.diagnose(()) == []


def test_a_link_to_a_definition(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (path.parent / "alias").symlink_to("tiny")
    (path.parent / "broken").symlink_to("nowhere")
    found = {item.name: item for item in definition.diagnose(paths.os_search_path)}
    assert found["alias"].valid
    assert "leads to no directory" in found["broken"].diagnose
    assert definition.load("alias", paths.os_search_path).name == "alias"


def test_a_missing_script(paths: Paths, make_os: MakeOs) -> None:
    (make_os() / "verify").unlink()
    assert reason(paths) == "script verify is missing"


@pytest.mark.parametrize(("name", "other"), [("import", "export"), ("export", "import")])
def test_import_and_export_belong_together(
    paths: Paths, make_os: MakeOs, name: str, other: str
) -> None:
    (make_os() / name).unlink()
    assert reason(paths).startswith(f"script {name} is missing, and {other} is there")


def test_scripts_that_may_be_missing(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    for name in ("import", "export", "rename"):
        (path / name).unlink()
    assert definition.load("tiny", paths.os_search_path).has_script("import") is False


@pytest.mark.parametrize("name", ["create", "import", "export", "rename", "verify"])
def test_a_script_that_is_not_executable(paths: Paths, make_os: MakeOs, name: str) -> None:
    (make_os() / name).chmod(0o655)
    assert f"script {name} is not executable for its owner (mode 0655)" in reason(paths)


def test_a_script_that_is_no_file(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (path / "import").unlink()
    (path / "import").mkdir()
    (path / "export").unlink()
    (path / "export").symlink_to("nowhere")
    (path / "rename").unlink()
    (path / "rename").symlink_to("rename")
    text = reason(paths)
    assert "script import is not a regular file" in text
    assert "script export is missing (a link that leads nowhere)" in text
    assert "script rename cannot be accessed: Too many levels of symbolic links" in text


def test_neither_create_script(paths: Paths, make_os: MakeOs) -> None:
    (make_os() / "create").unlink()
    assert reason(paths) == "neither script create nor create_untrusted is there"


def test_only_the_script_for_a_helper_machine(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (path / "create").rename(path / "create_untrusted")
    assert definition.load("tiny", paths.os_search_path).trusted is False
    (path / "create").write_text("#!/bin/sh\n")
    (path / "create").chmod(0o755)
    assert definition.load("tiny", paths.os_search_path).trusted is True
    (path / "create_untrusted").chmod(0o644)
    assert "create_untrusted is not executable" in reason(paths)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"twenty\n", "'twenty' is not a version number"),
        (b"20\n-1\n", "'-1' is not a version number"),
        (b"\xff\n", "not UTF-8"),
        (b"5\n30\n", "no common API version: it has 5, 30, this node knows 10, 15, 20"),
    ],
)
def test_bad_versions(paths: Paths, make_os: MakeOs, content: bytes, text: str) -> None:
    (make_os() / "ganeti_api_version").write_bytes(content)
    assert text in reason(paths)


def test_no_versions(paths: Paths, make_os: MakeOs) -> None:
    file = make_os() / "ganeti_api_version"
    file.unlink()
    assert reason(paths) == "file ganeti_api_version is missing"
    file.mkdir()
    assert reason(paths) == "ganeti_api_version is not a regular file"


def test_old_definitions_need_less(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (path / "ganeti_api_version").write_text("10\n\n")
    (path / "verify").unlink()
    (path / "parameters.list").unlink()
    (path / "variants.list").write_text("a b\n")
    found = definition.load("tiny", paths.os_search_path)
    assert (found.api_version, found.variants, found.variant, found.parameters) == (10, (), "", ())


def test_versions_that_are_not_known_yet_do_no_harm(paths: Paths, make_os: MakeOs) -> None:
    (make_os() / "ganeti_api_version").write_text("15\n30\n")
    assert definition.load("tiny", paths.os_search_path).api_version == 15


@pytest.mark.parametrize(
    ("content", "text"),
    [("a b\n", "'a b' cannot be a variant"), ("a+b\n", "'a+b'"), ("x\nx\n", "has 'x' twice")],
)
def test_bad_variants(paths: Paths, make_os: MakeOs, content: str, text: str) -> None:
    (make_os() / "variants.list").write_text(content)
    assert text in reason(paths)


def test_variants_are_optional(paths: Paths, make_os: MakeOs) -> None:
    file = make_os() / "variants.list"
    file.write_text("# none\n")
    assert definition.load("tiny", paths.os_search_path).variant == ""
    file.unlink()
    assert definition.load("tiny", paths.os_search_path).variant == ""
    with pytest.raises(errors.OpPrereqError, match="has no variants"):
        definition.load("tiny+small", paths.os_search_path)
    file.symlink_to("variants.list")
    assert "variants.list cannot be read: Too many levels" in reason(paths)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a=b text\n", "cannot become an environment variable"),
        ("disk-size x\ndisk_size y\n", "two parameters become OSP_DISK_SIZE"),
    ],
)
def test_bad_parameters(paths: Paths, make_os: MakeOs, content: str, text: str) -> None:
    (make_os() / "parameters.list").write_text(content)
    assert text in reason(paths)


def test_parameters_are_needed(paths: Paths, make_os: MakeOs) -> None:
    file = make_os() / "parameters.list"
    file.unlink()
    assert reason(paths) == "file parameters.list is missing"
    file.write_text("alone\nword \t with a text\n")
    found = definition.load("tiny", paths.os_search_path)
    assert found.parameters == (("alone", ""), ("word", "with a text"))


def test_all_defects_are_told_at_once(paths: Paths, make_os: MakeOs) -> None:
    path = make_os()
    (path / "verify").unlink()
    (path / "parameters.list").unlink()
    assert reason(paths) == "script verify is missing; file parameters.list is missing"


def test_choosing_a_variant(paths: Paths, make_os: MakeOs) -> None:
    make_os()
    assert definition.load("tiny", paths.os_search_path).variant == "small"
    with pytest.raises(errors.OpPrereqError, match=r"no variant 'smal' \(did you mean small\?\)"):
        definition.load("tiny+smal", paths.os_search_path)
    forced = definition.load("tiny+huge", paths.os_search_path, force_variant=True)
    assert forced.variant == "huge"


@pytest.mark.parametrize(
    "name",
    ["", "+", "tiny+", "+small", "../etc", "a/b", ".", "..", "t+a+b", "a b", "a\0b", "a\nb"],
)
def test_names_that_cannot_be(paths: Paths, make_os: MakeOs, name: str) -> None:
    make_os()
    with pytest.raises(errors.OpPrereqError) as caught:
        definition.load(name, paths.os_search_path)
    assert caught.value.args[1] == "wrong_input"


def test_an_os_that_is_not_installed(paths: Paths) -> None:
    with pytest.raises(errors.OpPrereqError, match="'gone' is not installed") as caught:
        definition.load("gone+x", paths.os_search_path)
    assert caught.value.args[1] == "unknown_entity"


def test_a_directory_name_with_a_plus_sign(paths: Paths, make_os: MakeOs) -> None:
    make_os("tiny+small")
    (found,) = definition.diagnose(paths.os_search_path)
    assert "plus sign" in found.diagnose


def test_unknown_parameters(paths: Paths, make_os: MakeOs) -> None:
    make_os()
    found = definition.load("tiny", paths.os_search_path)
    found.check_parameters({"size": "1", "disk-label": "x"})
    with pytest.raises(errors.OpPrereqError, match="no parameter 'sise'") as caught:
        found.check_parameters({"sise": "topsecret"})
    assert "topsecret" not in str(caught.value)


@pytest.mark.root
@needs_root("to give it up")
def test_files_without_read_permission() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        directory = Path(place) / "tiny"
        directory.mkdir()
        file = directory / "ganeti_api_version"
        file.write_text("20\n")
        file.chmod(0)
        os.seteuid(65534)
        try:
            (found,) = definition.diagnose([Path(place)])
        finally:
            os.seteuid(0)
    assert "file ganeti_api_version cannot be read: Permission denied" in found.diagnose
