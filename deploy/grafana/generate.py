"""Writes the dashboards: `python -m deploy.grafana.generate [--settings FILE] [--out DIR]`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from consumer.settings_source import SettingsError, load
from deploy.grafana.boards import dashboards
from deploy.grafana.panel import as_json
from deploy.prometheus.table import Table, TableError, read_table

FOLDER = Path(__file__).with_name("dashboards")


def files(table: Table) -> dict[str, str]:
    """JSON by file name."""
    return {
        f"{dashboard.uid}.json": json.dumps(as_json(dashboard), indent=1, ensure_ascii=False) + "\n"
        for dashboard in dashboards(table)
    }


@click.command()
@click.option(
    "--settings", "file", type=click.Path(path_type=Path), help="Groundwatch settings (default: ./groundwatch.toml)."
)
@click.option("--pages", help="Address of the monitor's pages.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=FOLDER, show_default=True)
def main(file: Path | None, pages: str | None, out: Path) -> None:
    """Write the dashboards as JSON, for Grafana's provisioning or its import page."""
    try:
        table = read_table(load(file, os.environ).settings).linked(pages=pages)
        if not table.segments:
            raise TableError("segments.allow is empty, and the dashboards compare segments: name a label there")
    except SettingsError as error:
        raise click.UsageError(f"settings:\n{error}") from None
    except (TableError, OSError) as error:
        raise click.ClickException(str(error)) from None
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files(table).items():
        (out / name).write_text(text, encoding="utf-8")
        click.echo(out / name)


if __name__ == "__main__":
    main()
