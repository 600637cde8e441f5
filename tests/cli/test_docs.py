"""docs/cli.md says what is true."""

from __future__ import annotations

import re
from pathlib import Path

import forgetting as fg
from forgetting.cli.app import make_app
from forgetting.cli.problems import read_config
from forgetting.cli.report import settings_from

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_every_command_that_the_page_shows_exists():
    app = make_app()
    known = {command.name for command in [*app.registered_commands, *app.registered_groups]}
    shown = set(re.findall(r"^forgetting ([\w-]+)", PAGE, re.MULTILINE))
    assert shown
    assert shown <= known


def test_the_configs_of_the_page_can_be_read(tmp_path):
    fg.families.two_lines(0.5).save(tmp_path / "tasks.npz")
    configs = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(configs) == 2
    for config in configs:
        (tmp_path / "my.toml").write_text(config)
        loaded = read_config(tmp_path / "my.toml")
        assert loaded.problem.num_tasks == 2
        assert settings_from(loaded).k == 1000
