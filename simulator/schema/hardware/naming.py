"""What people call a profile: the name under which its machine or store is rented."""

from __future__ import annotations


def short_name(profile: object) -> str:
    """Return the name of a profile without its folders, which files may leave out.

    Examples
    --------
    >>> short_name("instance/aws/p4d.24xlarge"), short_name("storage/s3"), short_name("dgx-h100")
    ('p4d.24xlarge', 's3', 'dgx-h100')
    """
    return str(profile).rpartition("/")[2]
