"""Which directories lie on shared drives."""

from pathlib import Path

import pytest

from memory_mcp.store.sqlite import network_drives
from memory_mcp.store.sqlite.network_drives import filesystem_of, is_on_network_drive

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt rw,relatime - tmpfs tmpfs rw
31 30 0:41 / /mnt/nas rw,relatime shared:2 master:1 - nfs4 server:/export rw
32 22 0:42 / /media/My\\040Drive rw - cifs //server/share rw
33 22 0:43 / /home rw - nfs server:/home rw
34 22 8:2 / /home rw - ext4 /dev/sdb1 rw
"""


@pytest.fixture
def mounts(tmp_path) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    return table


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/memory", "ext4"),
        ("/mnt/disk", "tmpfs"),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nas/memory/nilou", "nfs4"),
        ("/mnt/nasty", "tmpfs"),
        ("/media/My Drive/memory", "cifs"),
        ("/", "ext4"),
    ],
)
def test_the_nearest_mount_above_a_path_counts(mounts, path, kind):
    assert filesystem_of(path, mounts) == kind


def test_of_two_mounts_on_one_place_the_later_counts(mounts):
    assert filesystem_of("/home/user", mounts) == "ext4"


def test_a_system_without_a_table_of_mounts_has_no_answer(tmp_path):
    assert filesystem_of("/srv", tmp_path / "none") == ""


def test_a_shared_drive_is_recognised_and_a_local_one_is_not(mounts, monkeypatch):
    monkeypatch.setattr(network_drives, "_MOUNTS", mounts)
    assert is_on_network_drive(Path("/mnt/nas/memory/memory.sqlite"))
    assert not is_on_network_drive(Path("/srv/memory/memory.sqlite"))
