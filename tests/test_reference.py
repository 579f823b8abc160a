"""The generated pages of docs/reference are current: `make reference` writes them."""

from bench import reference


def test_the_generated_pages_are_current():
    page = reference.SECURITY_PAGE.read_text()
    assert page == reference.with_rules(page), "docs/explanation/security.md: make reference"
    page = reference.CLI_PAGE.read_text()
    assert page == reference.with_settings(reference.with_commands(page)), "docs/reference/cli.md: make reference"
    page = reference.API_PAGE.read_text()
    assert page == reference.with_names(page), "docs/reference/python-api.md: make reference"
    parts = reference.cli().replace("\n### ", "\n## ").split("\n## ")
    sections = {part.partition("\n")[0]: part for part in parts}
    for command, context in reference.commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                section = sections[context.command_path]
                assert any(f"`{name}" in section or f", {name}" in section for name in parameter.opts), parameter
