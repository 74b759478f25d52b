"""Which files are disks that stand alone; the files are those of qemu-img."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from needs import needs_programs

from ganeti import errors
from ganeti.images import headers

pytestmark = needs_programs("qemu-img")


def create(path: Path, *options: str, size: str = "8M") -> Path:
    subprocess.run(["qemu-img", "create", "-q", *options, str(path), size], check=True)
    return path


def find(path: Path, wanted: str | None = None) -> headers.Found:
    data = path.read_bytes()
    return headers.find_format(data[: headers.HEAD], lambda at, size: data[at : at + size], wanted)


def edit(path: Path, offset: int, form: str, value: int) -> None:
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, offset, value)
    path.write_bytes(data)


@pytest.mark.parametrize("compat", ["0.10", "1.1"])
def test_qcow2_of_both_versions(tmp_path: Path, compat: str) -> None:
    path = create(tmp_path / "a", "-f", "qcow2", "-o", f"compat={compat}")
    assert find(path) == ("qcow2", 8 << 20)


@pytest.mark.parametrize("kind", ["monolithicSparse", "streamOptimized"])
def test_vmdk_in_one_file(tmp_path: Path, kind: str) -> None:
    path = create(tmp_path / "a.vmdk", "-f", "vmdk", "-o", f"subformat={kind}")
    assert find(path) == ("vmdk", 8 << 20)


def test_disk_with_a_partition_table_is_raw(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(510) + b"\x55\xaa" + bytes(512))
    assert find(path) == ("raw", None)


def test_page_of_a_web_server_is_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"<html>404</html>" * 100)
    with pytest.raises(errors.OpPrereqError, match=r"neither qcow2.*--format raw"):
        find(path)
    assert find(path, "raw").format == "raw"


def test_backing_file_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "base", "-f", "raw")
    path = create(tmp_path / "a", "-f", "qcow2", "-F", "raw", "-b", str(tmp_path / "base"))
    with pytest.raises(errors.OpPrereqError, match="needs a backing file"):
        find(path)


def test_data_file_is_refused_by_either_mark(tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = create(tmp_path / "a", "-f", "qcow2", "-o", f"data_file={data}")
    with pytest.raises(errors.OpPrereqError, match="data are in another file"):
        find(path)
    edit(path, 72, ">Q", 0)
    with pytest.raises(errors.OpPrereqError, match="data are in another file"):
        find(path)


def test_encrypted_ones_are_refused(tmp_path: Path) -> None:
    """The method stands in bytes 32 to 35 of qcow2. qemu-img measures the processor to make one."""
    qcow2 = create(tmp_path / "a", "-f", "qcow2")
    with qcow2.open("r+b") as file:
        file.seek(32)
        file.write((2).to_bytes(4, "big"))
    with pytest.raises(errors.OpPrereqError, match="encrypted"):
        find(qcow2)
    luks = tmp_path / "b"
    luks.write_bytes(b"LUKS\xba\xbe\x00\x01".ljust(8 << 20, b"\0"))
    with pytest.raises(errors.OpPrereqError, match="LUKS"):
        find(luks)


def test_vmdk_with_other_files_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "a.vmdk", "-f", "vmdk", "-o", "subformat=twoGbMaxExtentSparse")
    with pytest.raises(errors.OpPrereqError, match="needs other files"):
        find(path)


def test_vmdk_whose_text_names_a_device_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "a.vmdk", "-f", "vmdk", "-o", "subformat=monolithicSparse")
    data = path.read_bytes()
    start = data.index(b"RW ")
    end = data.index(b"\n", start)
    line = b'RW 16384 FLAT "/etc/shadow" 0'.ljust(end - start)
    path.write_bytes(data[:start] + line + data[end:])
    with pytest.raises(errors.OpPrereqError, match="needs other files"):
        find(path)


def test_vmdk_that_is_only_a_text_inside_is_refused(tmp_path: Path) -> None:
    """QEMU takes the text of a header without a capacity for a list of files."""
    path = create(tmp_path / "a.vmdk", "-f", "vmdk", "-o", "subformat=monolithicSparse")
    edit(path, 12, "<Q", 0)
    with pytest.raises(errors.OpPrereqError, match="without a description"):
        find(path)


def test_vmdk_with_a_parent_is_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "a.vmdk", "-f", "vmdk", "-o", "subformat=monolithicSparse")
    path.write_bytes(path.read_bytes().replace(b"parentCID=ffffffff", b"parentCID=12345678"))
    with pytest.raises(errors.OpPrereqError, match="parent"):
        find(path)


@pytest.mark.parametrize("format", ["vdi", "vhdx", "qed"])
def test_other_formats_are_named(tmp_path: Path, format: str) -> None:
    path = create(tmp_path / "a", "-f", format)
    with pytest.raises(errors.OpPrereqError, match=f"(?i){format}.*not supported"):
        find(path)


def test_unknown_feature_and_damage_are_refused(tmp_path: Path) -> None:
    path = create(tmp_path / "a", "-f", "qcow2")
    edit(path, 72, ">Q", 1 << 40)
    with pytest.raises(errors.OpPrereqError, match="unknown features"):
        find(path)
    edit(path, 72, ">Q", 2)
    with pytest.raises(errors.OpPrereqError, match="damaged"):
        find(path)


def test_format_that_was_named_must_be_the_one_found(tmp_path: Path) -> None:
    path = create(tmp_path / "a", "-f", "qcow2")
    with pytest.raises(errors.OpPrereqError, match="is qcow2, not raw"):
        find(path, "raw")


def test_header_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"QFI\xfb\0\0\0\3")
    with pytest.raises(errors.OpPrereqError, match="cut off"):
        find(path)
    path.write_bytes(b"")
    with pytest.raises(errors.OpPrereqError, match="empty"):
        find(path)
