/** `roomd template`: templates are built on the host and used by every room on it. */
import { openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { stringify } from "smol-toml";
import {
  templateBuildEnd,
  templateBuildGet,
  templateCreate,
  templateRemove,
} from "../../../shared/api/template-builds.ts";
import { type TemplateRecord, templateGet, templateList } from "../../../shared/api/templates.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { call } from "../kit/client.ts";
import { command, commandGroup } from "../kit/command.ts";
import { fieldLines, type JsonOption, print, printable, say, show, showValue, table } from "../kit/output.ts";
import { type Progress, withProgress } from "../kit/progress.ts";
import { recordLines } from "../kit/record-lines.ts";
import { integer, mebibytes, pair, word } from "../kit/values.ts";
import { followBuild } from "./build-follow.ts";
import { buildOnHost } from "./build-on-host.ts";
import { fetchWarning } from "./dockerfile-network.ts";
import { type ConfigOption, IS_HOST, withConfigOption, withOperator } from "./operator.ts";

export function templateCommand(): Command {
  const made = commandGroup("template", {
    summary: `templates, from which sandboxes start${IS_HOST ? " (build, import, list and remove: on the host)" : ""}`,
    notes: ["`roomd template request` has the service build one for your organization alone, from any machine."],
    examples: [...(IS_HOST ? ["roomd template build default"] : []), "roomd template list"],
  });
  if (IS_HOST) for (const each of [build(), importImage(), refresh()]) made.addCommand(each);
  return made
    .addCommand(request())
    .addCommand(follow())
    .addCommand(cancel())
    .addCommand(list())
    .addCommand(get())
    .addCommand(remove());
}

interface BuildOptions extends JsonOption, ConfigOption, ImageOptions {
  recipe?: string;
  dockerfile?: string;
  context?: string;
  buildArg?: Record<string, string>;
  egress?: string[];
  secret?: Record<string, Uint8Array>;
  cache: boolean;
}

const NO_CACHE = ["--no-cache", "run every step again, whatever earlier builds have made"] as const;

function build(): Command {
  const about = {
    summary: "build a template; it replaces the earlier one",
    examples: [
      "roomd template build default",
      "roomd template build python --recipe python.toml --secret token=./token",
      "roomd template build app --dockerfile Dockerfile --egress packages.example.com:443 --memory 1024",
    ],
  };
  const it = withConfigOption(command("build <template>", about))
    .option("--recipe <file>", "recipe of the template (default: the recipe that comes with roomd)")
    .option("--dockerfile <file>", "build it from a Dockerfile")
    .option("--context <directory>", "build context (default: the Dockerfile's directory)")
    .option("--build-arg <name=value>", "for the Dockerfile's ARG; repeatable", pair)
    .option("--egress <entry>", "let the Dockerfile's RUN reach this host, address or network; repeatable", word)
    .option(...NO_CACHE)
    .option("--secret <name=file>", "give steps a file as /run/secrets/NAME; not stored; repeatable", secrets);
  return withImageOptions(it, "of a Dockerfile: ").action(async (id: string, options: BuildOptions) => {
    const { dockerfile } = options;
    const recipe = dockerfile === undefined ? recipeIn(options) : ofDockerfile(id, dockerfile, options);
    const warning = dockerfile !== undefined && options.egress === undefined && fetchWarning(dockerfile);
    if (warning) await say(warning);
    const order = {
      ...{ template_id: id, recipe: recipe ?? null, args: options.buildArg ?? {} },
      ...{ secrets: asBase64(options.secret), registry_auth: read(options.registryAuth) ?? null },
      anew: !options.cache,
    };
    const record = await withProgress(`building template ${id}`, (progress) =>
      buildOnHost(options, order, told(progress, id, options)),
    );
    await showValue(record, options, fieldLines);
  });
}

const OF_DOCKERFILE = ["context", "buildArg", "egress", "memory", "disk", "start", "ready", "description"] as const;

/** A recipe specifies its own options. */
function recipeIn(options: BuildOptions): string | undefined {
  const [optionName] = OF_DOCKERFILE.filter((name) => options[name] !== undefined);
  if (optionName === undefined) return read(options.recipe);
  const flag = optionName.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
  throw new CliError(`--${flag} needs --dockerfile: a recipe contains this setting itself.`, EXIT.usage);
}

function ofDockerfile(id: string, dockerfile: string, options: BuildOptions): string {
  const { recipe, context, egress } = options;
  if (recipe !== undefined) throw new CliError("Give a recipe or a Dockerfile, not both.", EXIT.usage);
  return recipeOf(id, dockerfile, options, {
    ...{ dockerfile: resolve(dockerfile), context: resolve(context ?? dirname(dockerfile)) },
    ...(egress !== undefined && { egress_allowlist: egress }),
  });
}

const MAX_SECRET_BYTES = 524_288;

/** Gathers NAME=FILE. */
function secrets(text: string, before: Record<string, Uint8Array> = {}): Record<string, Uint8Array> {
  const [, name, file] = /^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})=(.+)$/s.exec(text) ?? [];
  if (name === undefined || file === undefined) throw new InvalidArgumentError("It is NAME=FILE.");
  const bytes = readFileSync(file);
  if (bytes.byteLength > MAX_SECRET_BYTES) throw new InvalidArgumentError(`${file} has more than 512 KiB.`);
  return { ...before, [name]: bytes };
}

const mapped = <T, U>(record: Record<string, T>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
const asBase64 = (files: Record<string, Uint8Array> = {}) => mapped(files, (bytes) => bytes.toBase64());

function told(progress: Progress, id: string, { verbose }: ImageOptions): (line: string) => void {
  return (line) => {
    if (!verbose) return progress.say(`${id}: ${printable(line)}`);
    progress.giveWay();
    void say(printable(line));
  };
}

interface ImageOptions {
  registryAuth?: string;
  memory?: number;
  disk?: number;
  description?: string;
  start?: boolean;
  ready?: string;
  verbose?: boolean;
}

/** Options of a template made from an image; `of` is a note on when they apply. */
function withImageOptions(command: Command, of: string): Command {
  return command
    .option("--registry-auth <file>", "registry credentials, in the format of docker's config.json; not stored")
    .option("--memory <mib>", `${of}memory of its sandboxes, unless they set another (default: 512)`, mebibytes(256))
    .option("--disk <mib>", `${of}maximum size of a sandbox's disk (default: 8192)`, mebibytes(1024))
    .option("--start", `${of}run the image's entry point in every sandbox`)
    .option("--ready <command>", `${of}shell command that exits with 0 once it is ready (with --start)`)
    .option("--description <text>", `${of}its description in the list of templates`)
    .option("--verbose", "print every step on standard error, even if it is not a terminal");
}

/** `root` is the base in the recipe's format, and `from` its origin. */
function recipeOf(id: string, from: string, options: ImageOptions, root: Record<string, unknown>): string {
  const { description = from, memory = 512, disk = 8192, start, ready } = options;
  return stringify({
    ...{ template_id: id, description: description.slice(0, 256), ...root, tools: [] },
    ...{ min_memory_mib: 256, default_memory_mib: memory, disk_mib: disk },
    ...(start && { start: "image" }),
    ...(ready !== undefined && { ready }),
  });
}

function importImage(): Command {
  const about = {
    summary: "create a template from an image: from a registry, or a file or directory of this host",
    examples: [
      "roomd template import python docker://registry.example.com/python:3.13-slim --memory 512",
      "roomd template import mine oci:./layout",
      "docker save mine:1 | roomd template import mine -",
    ],
  };
  return withImageOptions(withConfigOption(command("import <template> <image>", about)), "").action(
    async (id: string, image: string, options: ImageOptions & JsonOption & ConfigOption) => {
      const given = image === "-" ? await savedInput() : null;
      const from = given ? `docker-archive:${given}` : absolute(image);
      const recipe = recipeOf(id, given ? "an image from standard input" : image, options, { from });
      const order = { template_id: id, recipe, registry_auth: read(options.registryAuth) ?? null };
      const record = await withProgress(`importing ${id}`, (progress) =>
        buildOnHost(options, order, told(progress, id, options)),
      );
      await showValue(record, options, fieldLines);
    },
  );
}

interface RequestOptions extends Omit<ImageOptions, "verbose" | "memory">, JsonOption {
  image?: string;
  dockerfile?: string;
  context?: string;
  step?: string[];
  buildArg?: Record<string, string>;
  egress?: string[];
  secret?: Record<string, Uint8Array>;
  startScript?: string;
  minMemory?: number;
  memory?: number;
  cache: boolean;
  wait: boolean;
}

function request(): Command {
  const about = {
    summary: "have the service build a template for your organization, and follow the build",
    notes: ["Source: --image, optionally with --step, or --dockerfile. Ctrl-C stops following, not the build."],
    examples: [
      "roomd template request python --image docker://registry.example.com/python:3.13-slim",
      "roomd template request pytest --image docker://registry.example.com/python:3.13-slim --step 'pip install pytest' --egress packages.example.com:443",
      "tar -cz -C app . | roomd template request app --dockerfile app/Dockerfile --context /dev/stdin",
    ],
  };
  return command("request <template>", about)
    .option("--image <image>", "source image, as docker://REGISTRY/NAME:TAG")
    .option("--step <script>", "shell script that root runs in it before it is saved; repeatable", word)
    .option("--dockerfile <file>", "build it from a Dockerfile")
    .option("--context <tar>", "build context, as a tar, optionally gzipped: `tar -cz DIRECTORY`")
    .option("--build-arg <name=value>", "for the Dockerfile's ARG; repeatable", pair)
    .option("--egress <entry>", "let steps reach this host, address or network; repeatable", word)
    .option("--secret <name=file>", "give steps a file as /run/secrets/NAME; not stored; repeatable", secrets)
    .option("--registry-auth <file>", "registry credentials, in the format of docker's config.json; not stored")
    .option("--min-memory <mib>", "memory that it is saved with (default: 256)", mebibytes(256))
    .option("--memory <mib>", "memory of its sandboxes, unless they set another (default: 512)", mebibytes(256))
    .option("--disk <mib>", "maximum size of a sandbox's disk (default: 8192)", mebibytes(1024))
    .option("--start", "run the image's entry point in every sandbox")
    .option("--start-script <script>", "shell script whose processes run in every sandbox")
    .option("--ready <script>", "shell script that exits with 0 once it is ready")
    .option("--description <text>", "its description in the list of templates")
    .option(...NO_CACHE)
    .option("--no-wait", "print the build's record immediately")
    .action(async (template_id: string, options: RequestOptions) => {
      const { image, step, dockerfile, context, start, startScript } = options;
      const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
      const response = await call(templateCreate, {
        template_id,
        from: {
          ...(dockerfile !== undefined && { dockerfile: readFileSync(dockerfile, "utf8") }),
          ...(context !== undefined && { context: readFileSync(context).toBase64() }),
          ...(image !== undefined && step === undefined && { image }),
          ...(image !== undefined && step !== undefined && { recipe: { from: image, steps: step } }),
        },
        description: options.description,
        start: startScript ?? (start ? "image" : undefined),
        ready: options.ready,
        min_memory_mib: options.minMemory,
        default_memory_mib: options.memory,
        disk_mib: options.disk,
        egress_allowlist: options.egress,
        secrets: options.secret && mapped(options.secret, text),
        build_args: options.buildArg,
        registry_auth: read(options.registryAuth),
        no_cache: options.cache ? undefined : true,
      });
      if (!options.wait) return await show(response, options, fieldLines);
      const { build_id, warnings = [] } = response.value;
      await say(...warnings, `build ${build_id}`);
      await followBuild({ template_id, build_id }, -1);
      await show(await call(templateGet, { template_id }), options, recordLines);
    });
}

function follow(): Command {
  return command("follow <template> <build>", {
    summary: "show the events of a build, from start to end",
    examples: ["roomd template follow python bld_01KG9YS7G0B5H8K3M6P9R2T4WY"],
  })
    .option("--after <seq>", "only events after this number", integer(-1))
    .option("--no-follow", "only existing events")
    .action(
      async (template_id: string, build_id: string, options: { after?: number; follow: boolean } & JsonOption) => {
        await followBuild({ template_id, build_id }, options.after ?? -1, options.follow);
        const record = await call(templateBuildGet, { template_id, build_id });
        await show(record, options, fieldLines);
      },
    );
}

function cancel(): Command {
  return command("cancel <template> <build>", {
    summary: "end a build of your organization",
    examples: ["roomd template cancel python bld_01KG9YS7G0B5H8K3M6P9R2T4WY"],
  }).action(async (template_id: string, build_id: string, options: JsonOption) => {
    await show(await call(templateBuildEnd, { template_id, build_id }), options, fieldLines);
  });
}

const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file, "utf8"));

/** A path of an image file is relative to the current directory. */
function absolute(image: string): string {
  const [, transport, path] = /^(oci|docker-archive):([^/].*)$/.exec(image) ?? [];
  return path === undefined ? image : `${transport}:${resolve(path)}`;
}

function refresh(): Command {
  const about = {
    summary: "rebuild a template from its source: the current image of its tag, current packages and files",
    examples: ["roomd template refresh python", "roomd template refresh app --secret token=./token"],
  };
  return withConfigOption(command("refresh <template>", about))
    .option("--secret <name=file>", "give steps a file as /run/secrets/NAME; not stored; repeatable", secrets)
    .option("--registry-auth <file>", "registry credentials, in the format of docker's config.json; not stored")
    .option("--verbose", "print every step on standard error, even if it is not a terminal")
    .action(async (id: string, options: RefreshOptions) => {
      const { recipe, args } = await withOperator(options, ({ templates }) => templates.keptRecipe(id));
      const order = {
        ...{ template_id: id, recipe, args: { ...args } },
        ...{ secrets: asBase64(options.secret), registry_auth: read(options.registryAuth) ?? null },
        anew: true,
      };
      const record = await withProgress(`building template ${id}`, (progress) =>
        buildOnHost(options, order, told(progress, id, options)),
      );
      await showValue(record, options, fieldLines);
    });
}

type RefreshOptions = Pick<BuildOptions, "secret" | "registryAuth" | "verbose"> & JsonOption & ConfigOption;

/** The same limit as for a downloaded image. */
const MAX_SAVED_BYTES = 8 * 1024 ** 3;

/** Output of `docker save`, in an unlinked file, which disappears with this process. */
async function savedInput(): Promise<string> {
  const file = `/var/tmp/roomd-import-${crypto.randomUUID()}.tar`;
  const descriptor = openSync(file, "wx+", 0o600);
  unlinkSync(file);
  let bytes = 0;
  for await (const piece of process.stdin as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength;
    if (bytes > MAX_SAVED_BYTES) throw new CliError("The image has more than 8 GiB.");
    writeFileSync(descriptor, piece);
  }
  return `/proc/${process.pid}/fd/${descriptor}`;
}

function list(): Command {
  const about = {
    summary: "list the templates of this host, or the templates available to your organization",
    notes: ["Without --org it is run on the host, as root."],
    examples: ["roomd template list", "roomd template list --org", "roomd template list --json"],
  };
  const listed = withConfigOption(command("list", about)).option("--org", "list from the service, with your own key");
  return listed.action(async (options: JsonOption & ConfigOption & { org?: true }) => {
    if (options.org || !IS_HOST) {
      return await show(await call(templateList, {}), options, ({ items }) =>
        table(
          ["TEMPLATE", "OF", ...FACTS],
          items.map((item) => [item.template_id, item.visibility, ...factsOf(item)]),
        ),
      );
    }
    const { items, outdated } = await withOperator(options, ({ templates }) => templates.list());
    for (const id of outdated) await say(`${id} was built by an older roomd: run \`roomd template build ${id}\``);
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["TEMPLATE", ...FACTS],
        items.map((item) => [item.template_id, ...factsOf(item)]),
      ),
    );
  });
}

const FACTS = ["MEMORY", "MINIMUM", "CREATED", "DIGEST", "DESCRIPTION"];

function factsOf({ default_memory_mib, min_memory_mib, created_at, digest, description }: TemplateRecord) {
  return [`${default_memory_mib} MiB`, `${min_memory_mib} MiB`, created_at, digest, description];
}

function get(): Command {
  return command("get <template>", {
    summary: "print a template's record, as the service shows it to its clients",
    examples: ["roomd template get default"],
  }).action(async (template_id: string, options: JsonOption) => {
    await show(await call(templateGet, { template_id }), options, recordLines);
  });
}

function remove(): Command {
  const about = {
    summary: "remove a template from this host, or from your organization",
    examples: ["roomd template remove python", "roomd template remove python --own"],
  };
  return withConfigOption(command("remove <template>", about))
    .option("--own", "remove your organization's own template, through the service")
    .action(async (template_id: string, options: JsonOption & ConfigOption & { own?: boolean }) => {
      if (options.own || !IS_HOST) await call(templateRemove, { template_id });
      else await withOperator(options, ({ templates }) => templates.remove(template_id));
      if (options.json) await print(JSON.stringify({ template_id, state: "removed" }));
      else await print(`template ${template_id} is removed`);
    });
}
