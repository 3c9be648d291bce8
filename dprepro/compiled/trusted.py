"""Whether only this user can have written a file: asked before it is unpickled, which runs code."""

from __future__ import annotations

import os
import stat
from pathlib import Path


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
