"""What people call a profile: the name under which its machine or store is rented."""

from __future__ import annotations


def short_name(profile: object) -> str:
    """The name of a profile without the folders before it, which may be left out in files as well.

    Examples
    --------
    >>> short_name("instance/aws/p4d.24xlarge"), short_name("storage/s3"), short_name("dgx-h100")
    ('p4d.24xlarge', 's3', 'dgx-h100')
    """
    return str(profile).rpartition("/")[2]
