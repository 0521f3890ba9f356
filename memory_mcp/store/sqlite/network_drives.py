"""Detects network drives, where SQLite's write-ahead log corrupts."""

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ceph 9p virtiofs vboxsf prl_fs glusterfs lustre fuse.sshfs fuse.rclone fuse.grpcfuse fuse.osxfs fakeowner".split()
)


def is_on_network_drive(path: Path) -> bool:
    """Whether `path` is on a network drive, by the mounts on Linux or a \\\\server path on Windows."""
    text = str(path.absolute())
    if text.startswith("\\\\"):
        return True
    return filesystem_of(text, _MOUNTS) in _SHARED


def filesystem_of(path: str, mounts: Path) -> str:
    """The type of the innermost file system mounted above `path`; "" if the system has no mount table."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        fields = line.split()
        point = fields[4].replace("\\040", " ")
        beneath = point in ("/", path) or path.startswith(point + "/")
        if beneath and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind
