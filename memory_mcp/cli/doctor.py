"""`memory-mcp doctor`: diagnoses problems, with or without a running server, and changes nothing."""

from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import ConfigFile, DataDirectory
from memory_mcp.config.reading import default_config_path, default_data_directory

if TYPE_CHECKING:
    from memory_mcp.cli.doctor_checks import Finding

_COLOURS = {"ok": typer.colors.GREEN, "note": typer.colors.YELLOW, "wrong": typer.colors.RED}


def doctor(
    config: ConfigFile = None,
    data: DataDirectory = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only problems.")] = False,
) -> None:
    """Check configuration, data, databases and models. Exit status 0: there are no problems."""
    # Imported here: the other commands don't need the stores and their libraries.
    from memory_mcp.cli.doctor_checks import check_config, check_data, check_encryption, check_extras, check_models  # noqa: PLC0415
    from memory_mcp.cli.doctor_stores import check_left_alone, check_stores  # noqa: PLC0415

    config_path = config or default_config_path()
    data_directory = data or default_data_directory()
    settings, findings = check_config(config_path)
    findings += [*check_extras(settings), *check_models(settings, data_directory)]
    keys, encryption = check_encryption(settings, data_directory)
    findings += [*encryption, *check_data(data_directory, keys, settings)]
    if data_directory.is_dir():
        findings += check_left_alone(data_directory)
    findings += check_stores(data_directory, keys)
    wrong = [finding for finding in findings if finding.verdict == "wrong"]
    for finding in wrong if quiet else findings:
        _print(finding)
    if wrong:
        tell("\n{} thing(s) wrong.", len(wrong))
        raise typer.Exit(1)
    tell("Nothing is wrong." if quiet else "\nNothing is wrong.")


def _print(finding: "Finding") -> None:
    # Imported here, as above.
    from rich.cells import cell_len  # noqa: PLC0415

    verdict = worded(finding.verdict)
    typer.secho(" " * (5 - cell_len(verdict)) + verdict, nl=False, fg=_COLOURS[finding.verdict])
    typer.echo(f"  {worded(finding.what)}: {worded(finding.sentence)}")
