/** Owns `roomd template`: templates are built on the host and used by every room on it. */
import type { Command } from "commander";
import { templateGet } from "../../shared/api/templates.ts";
import { call } from "./client.ts";
import { command, commandGroup } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { fieldLines, type JsonOption, print, printable, say, show, showValue, table } from "./output.ts";
import { withProgress } from "./progress.ts";

export function templateCommand(): Command {
  return commandGroup("template", {
    summary: "templates, from which sandboxes start (build, list and remove: on the host)",
    examples: ["roomd template build default", "roomd template list"],
  })
    .addCommand(build())
    .addCommand(list())
    .addCommand(get())
    .addCommand(remove());
}

interface BuildOptions extends JsonOption, ConfigOption {
  recipe?: string;
  verbose?: boolean;
}

function build(): Command {
  const about = {
    summary: "build a template; it replaces the earlier one",
    examples: ["roomd template build default", "roomd template build python --recipe python.toml --verbose"],
  };
  return withConfigOption(command("build <template>", about))
    .option("--recipe <file>", "file that says what goes into it (default: the one that comes with roomd)")
    .option("--verbose", "print every step on standard error, even if it is not a terminal")
    .action(async (id: string, options: BuildOptions) => {
      const record = await withProgress(`building template ${id}`, (progress) =>
        withOperator(options, ({ templates }) =>
          templates.build(id, {
            ...(options.recipe === undefined ? {} : { recipeFile: options.recipe }),
            onProgress: (line) => {
              if (options.verbose) progress.giveWay();
              if (options.verbose) void say(printable(line));
              else progress.say(`${id}: ${printable(line)}`);
            },
          }),
        ),
      );
      await showValue(record, options, fieldLines);
    });
}

function list(): Command {
  const about = {
    summary: "list the templates of this host",
    examples: ["roomd template list", "roomd template list --json"],
  };
  return withConfigOption(command("list", about)).action(async (options: JsonOption & ConfigOption) => {
    const { items, outdated } = await withOperator(options, ({ templates }) => templates.list());
    for (const id of outdated) await say(`${id} was built by an older roomd: run \`roomd template build ${id}\``);
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["TEMPLATE", "MEMORY", "MINIMUM", "CREATED", "DIGEST", "DESCRIPTION"],
        items.map((item) => [
          item.template_id,
          `${item.default_memory_mib} MiB`,
          `${item.min_memory_mib} MiB`,
          item.created_at,
          item.digest,
          item.description,
        ]),
      ),
    );
  });
}

function get(): Command {
  return command("get <template>", {
    summary: "print a template's record, as the service shows it to its clients",
    examples: ["roomd template get default"],
  }).action(async (template_id: string, options: JsonOption) => {
    await show(await call(templateGet, { template_id }), options, fieldLines);
  });
}

function remove(): Command {
  const about = { summary: "remove a template from this host", examples: ["roomd template remove python"] };
  return withConfigOption(command("remove <template>", about)).action(
    async (template_id: string, options: JsonOption & ConfigOption) => {
      await withOperator(options, ({ templates }) => templates.remove(template_id));
      if (options.json) await print(JSON.stringify({ template_id, state: "removed" }));
      else await print(`template ${template_id} is removed`);
    },
  );
}
