/** `roomd prompt` and `roomd skills`: the catalogue of prompts, to be copied or installed for coding agents. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { PROMPTS, promptNamed } from "../../../shared/prompts/catalogue.ts";
import { FILLINGS, type Filling, fill, KINDS, type Kind } from "../../../shared/prompts/prompt.ts";
import { SKILL, skillFiles } from "../../../shared/prompts/skills.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { choice, command, commandGroup } from "../kit/command.ts";
import { counted, type JsonOption, print, showValue, table } from "../kit/output.ts";

/** Skill directory of each agent, below the home directory. */
const READERS = {
  agents: ".agents/skills",
  "claude-code": ".claude/skills",
  codex: ".codex/skills",
  cursor: ".cursor/skills",
  gemini: ".gemini/skills",
  opencode: ".config/opencode/skills",
} as const;
type Reader = keyof typeof READERS;

export function promptCommand(): Command {
  return commandGroup("prompt", {
    summary: "texts to give to a model that has roomd's tools",
    examples: ["roomd prompt list", "roomd prompt show why-does-it-wait --room build-42 --agent worker"],
  })
    .addCommand(list())
    .addCommand(show());
}

function list(): Command {
  const about = {
    summary: "list the prompts",
    examples: ["roomd prompt list", "roomd prompt list --kind diagnose --json"],
  };
  return command("list", about)
    .addOption(choice("--kind <kind>", "only prompts of this kind", KINDS))
    .action(async (options: JsonOption & { kind?: Kind }) => {
      const items = PROMPTS.filter(({ kind }) => options.kind === undefined || kind === options.kind);
      await showValue({ items, next_cursor: null }, options, () =>
        table(
          ["NAME", "KIND", "RESULT"],
          items.map(({ name, kind, about }) => [name, kind, about]),
        ),
      );
    });
}

function show(): Command {
  const made = command("show <name>", {
    summary: "print a prompt, filled in with names",
    examples: ["roomd prompt show smoke-test", "roomd prompt show find-deadlock --room build-42"],
  });
  for (const [name, { about }] of Object.entries(FILLINGS)) made.addOption(new Option(`--${name} <${name}>`, about));
  return made.action(async (name: string, options: JsonOption & Partial<Record<Filling, string>>) => {
    const prompt = promptNamed(name);
    if (!prompt) {
      const detail = `There is no prompt ${name}.`;
      throw new CliError({ detail, errors: [], hint: "`roomd prompt list` shows them." }, EXIT.usage);
    }
    const text = fill(prompt, options);
    await showValue({ ...prompt, text }, options, () => [text]);
  });
}

export function skillsCommand(): Command {
  return commandGroup("skills", {
    summary: "the prompts as a skill that coding agents load automatically",
    examples: ["roomd skills install", "roomd skills install --for codex", "roomd skills remove"],
  })
    .addCommand(put("install", "install the skill for the agents of this account"))
    .addCommand(put("remove", "remove the skill"));
}

interface PutOptions extends JsonOption {
  for?: Reader;
  dir?: string;
}

function put(verb: "install" | "remove", summary: string): Command {
  const about = {
    summary,
    notes: [
      "Without --for: for each agent that has a directory already, or in ~/.agents/skills if there is none.",
      "An older version is replaced.",
    ],
    examples: [
      `roomd skills ${verb}`,
      `roomd skills ${verb} --for claude-code`,
      `roomd skills ${verb} --dir .claude/skills`,
    ],
  };
  return command(verb, about)
    .addOption(choice("--for <agent>", "only for this agent", Object.keys(READERS)))
    .option("--dir <directory>", "in this directory of skills, as a project's")
    .action(async (options: PutOptions) => {
      const directories = placesFor(options).map((place) => join(place, SKILL));
      const done = verb === "install" ? directories : directories.filter((each) => existsSync(each));
      for (const directory of done) requireOurs(directory);
      for (const directory of done) {
        rmSync(directory, { recursive: true, force: true });
        if (verb === "install") writeSkill(directory);
      }
      const action = verb === "install" ? `put ${counted(skillFiles().length, "file")} into` : "removed";
      if (options.json) return await showValue({ directories: done }, options, () => []);
      await print(...(done.length === 0 ? ["not installed"] : done.map((each) => `${action} ${each}`)));
    });
}

function placesFor({ for: reader, dir }: PutOptions): string[] {
  if (dir !== undefined) return [resolve(dir)];
  const all = Object.entries(READERS).map(([name, place]) => ({ name, place: join(homedir(), place) }));
  if (reader !== undefined) return all.filter(({ name }) => name === reader).map(({ place }) => place);
  const there = all.filter(({ place }) => existsSync(dirname(place))).map(({ place }) => place);
  return there.length > 0 ? there : [join(homedir(), READERS.agents)];
}

/** Throws if something else exists under that name. */
function requireOurs(directory: string): void {
  const file = join(directory, "SKILL.md");
  const isOurs = existsSync(file) && readFileSync(file, "utf8").startsWith(`---\nname: ${SKILL}\n`);
  if (isOurs || !existsSync(directory)) return;
  throw new CliError({ detail: `${directory} is not a skill of roomd.`, errors: [], hint: "Name another --dir." });
}

function writeSkill(directory: string): void {
  for (const { path, text } of skillFiles()) {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
