"""Packages that are not installed: the error that names them, and the command line that installs them.

pip, pipx and uv install into different environments, and mcpspy may come from a checkout, a wheel or an index: the
command line names the tool and the source that it was installed with.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

from mcpspy.errors import CannotStart


def require(package: str, command: str, extra: str = "lake") -> None:
    """Raise CannotStart if a package of an extra is not installed."""
    if find_spec(package) is None:
        raise CannotStart(f"{command} needs {package}, which is not installed", install_command(extra))


def missing_package(error: BaseException) -> CannotStart | None:
    """Return the error for an import that failed because a package that mcpspy always needs is not installed."""
    if (
        not isinstance(error, ModuleNotFoundError)
        or not error.name
        or error.name.partition(".")[0] == "mcpspy"
    ):
        return None
    return CannotStart(f"the package {error.name} is not installed", install_command())


def install_command(extra: str = "") -> str:
    """Return the command line that installs mcpspy with its packages, by the tool that installed it.

    It adds an extra and keeps the others.
    """
    import shlex

    extras = [extra] if extra else []
    prefix = Path(sys.prefix)
    where = f"{prefix.as_posix()}/"
    if getattr(sys, "frozen", False):
        return f"not in the executable; pipx install 'mcpspy[{extra}]' installs mcpspy with it"
    if "/archive-v0/" in where:
        return f"uvx --from {shlex.join(_source(extras))} mcpspy …"
    if (receipt := prefix / "uv-receipt.toml").exists():
        return shlex.join(["uv", "tool", "install", *_source([*extras, *_uv_extras(receipt)])])
    if (record := prefix / "pipx_metadata.json").exists():
        if "/.cache/" in where:
            return f"pipx run --spec {shlex.join(_source(extras))} mcpspy …"
        return shlex.join(["pipx", "install", "--force", *_source([*extras, *_pipx_extras(record)])])
    pip = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:
        pip = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*pip, *_source(extras)])


def _source(extras: list[str]) -> list[str]:
    """Return the arguments that name the source of the installation, with extras."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    names = f"[{','.join(sorted(set(extras)))}]" if extras else ""
    try:
        source = json.loads(distribution("mcpspy").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # A checkout that is not installed.
        return [f"{Path(__file__).parents[2]}{names}"]
    url = source.get("url", "")
    if url.startswith("file:"):
        is_editable = source.get("dir_info", {}).get("editable", False)
        return [*(["--editable"] if is_editable else []), f"{url2pathname(urlsplit(url).path)}{names}"]
    if "vcs_info" in source:
        url = f"{source['vcs_info']['vcs']}+{url}"
    return [f"mcpspy{names}{' @ ' if url else ''}{url}"]


def _uv_extras(receipt: Path) -> list[str]:
    import tomllib

    requirements = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
    return [name for each in requirements if each["name"] == "mcpspy" for name in each.get("extras", [])]


def _pipx_extras(record: Path) -> list[str]:
    import json

    package = json.loads(record.read_text(encoding="utf-8"))["main_package"]["package_or_url"]
    found = re.search(r"\[([\w, -]+)\]", package)
    return [] if found is None else re.split(r"\s*,\s*", found[1])
