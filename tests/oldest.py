"""The oldest version of each direct dependency that pyproject.toml allows, one `name==version` a line."""

import tomllib
from pathlib import Path


def oldest() -> list[str]:
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    lines = [*project["dependencies"], *settings["dependency-groups"]["dev"]]
    lines += [line for extra in project["optional-dependencies"].values() for line in extra]
    return [line.replace(">=", "==") for line in lines if not line.startswith(project["name"])]


if __name__ == "__main__":
    print("\n".join(oldest()))
