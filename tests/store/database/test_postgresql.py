from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..postgresql import idle_server, installed_package


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")
def test_postgresql_starts_as_another_user_from_a_package_in_a_private_folder(tmp_path: Path) -> None:
    package = installed_package()
    for installed in package.parent.glob(f"{package.name}*"):
        (tmp_path / installed.name).symlink_to(installed)
    tmp_path.chmod(0o700)
    with idle_server(package=tmp_path / package.name) as server, server.up():
        server.run("SELECT 1")


def test_a_package_that_cannot_start_says_why(tmp_path: Path) -> None:
    programs = tmp_path / "package" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_text("#!/bin/sh\nexit 0\n")
    (programs / "initdb").write_text("#!/bin/sh\necho no disk left\nexit 3\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    with (
        pytest.raises(AssertionError, match="initdb ended with 3: no disk left"),
        idle_server(package=tmp_path / "package"),
    ):
        pass
