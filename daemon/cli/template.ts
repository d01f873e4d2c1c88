/** Owns `roomd template`: templates are built on the host and used by every room on it. */
import { createWriteStream, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { stringify } from "smol-toml";
import { templateGet } from "../../shared/api/templates.ts";
import { call } from "./client.ts";
import { command, commandGroup } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { fieldLines, type JsonOption, print, printable, say, show, showValue, table } from "./output.ts";
import { type Progress, withProgress } from "./progress.ts";
import { integer } from "./values.ts";

export function templateCommand(): Command {
  return commandGroup("template", {
    summary: "templates, from which sandboxes start (build, import, list and remove: on the host)",
    examples: ["roomd template build default", "roomd template list"],
  })
    .addCommand(build())
    .addCommand(importImage())
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
            recipe: read(options.recipe),
            onProgress: told(progress, id, options),
          }),
        ),
      );
      await showValue(record, options, fieldLines);
    });
}

function told(progress: Progress, id: string, { verbose }: { verbose?: boolean }): (line: string) => void {
  return (line) => {
    if (!verbose) return progress.say(`${id}: ${printable(line)}`);
    progress.giveWay();
    void say(printable(line));
  };
}

interface ImportOptions extends JsonOption, ConfigOption {
  memory: number;
  disk: number;
  description?: string;
  registryAuth?: string;
  start?: boolean;
  ready?: string;
  verbose?: boolean;
}

function importImage(): Command {
  const about = {
    summary: "make a template of an image: from a registry, or of a file or directory of this host",
    examples: [
      "roomd template import python docker://registry.example.com/python:3.13-slim --memory 512",
      "roomd template import mine oci:./layout",
      "docker save mine:1 | roomd template import mine -",
    ],
  };
  return withConfigOption(command("import <template> <image>", about))
    .option("--memory <mib>", "memory of its sandboxes, where they say nothing else", integer(256), 512)
    .option("--disk <mib>", "what the disk of a sandbox may grow to", integer(1024), 8192)
    .option("--registry-auth <file>", "what opens the registry, as docker's config.json says it; kept nowhere")
    .option("--start", "have the image's entry point running in every sandbox")
    .option("--ready <command>", "shell command that ends with 0 once it is up (with --start)")
    .option("--description <text>", "what the list of templates says of it")
    .option("--verbose", "print every step on standard error, even if it is not a terminal")
    .action(async (id: string, image: string, options: ImportOptions) => {
      const given = image === "-" ? await savedInput() : null;
      try {
        const recipe = stringify({
          template_id: id,
          description: options.description ?? (given ? "an image from standard input" : image).slice(0, 256),
          from: given ? `docker-archive:${given}` : absolute(image),
          ...{ tools: [], min_memory_mib: 256, default_memory_mib: options.memory, disk_mib: options.disk },
          ...(options.start && { start: "image" }),
          ...(options.ready !== undefined && { ready: options.ready }),
        });
        const record = await withProgress(`importing ${id}`, (progress) =>
          withOperator(options, ({ templates }) =>
            templates.build(id, {
              recipe,
              registryAuth: read(options.registryAuth),
              onProgress: told(progress, id, options),
            }),
          ),
        );
        await showValue(record, options, fieldLines);
      } finally {
        if (given) await rm(given, { force: true });
      }
    });
}

const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file, "utf8"));

/** What is in a file is named from the directory that one stands in. */
function absolute(image: string): string {
  const [, transport, path] = /^(oci|docker-archive):([^/].*)$/.exec(image) ?? [];
  return path === undefined ? image : `${transport}:${resolve(path)}`;
}

/** What `docker save` writes. */
async function savedInput(): Promise<string> {
  const file = `/var/tmp/roomd-import-${crypto.randomUUID()}.tar`;
  await pipeline(process.stdin, createWriteStream(file, { flags: "wx", mode: 0o600 }));
  return file;
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
