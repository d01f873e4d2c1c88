/**
 * Parser of the supported Dockerfiles: one FROM, and the instructions that make a root without an image builder. All else is refused with
 * its line. Pure.
 */

import { DockerfileParser } from "dockerfile-ast";
import { MAX_DOCKERFILE_BYTES } from "../../../../shared/api/template-builds.ts";
import { TEMPLATE_PATTERN } from "../../../../shared/api/templates.ts";
import { parseJson } from "../../../core/json.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { REFERENCE_PATTERN } from "../image/reference.ts";
import { Expansion, type Reading, Unreadable, type Variables, variableOf, wordsOf } from "./tokens.ts";

const MAX_INSTRUCTIONS = 512;
/** Includes continuation lines and comments: each costs the parser time. */
const MAX_LINES = 10_000;

export type Keyword = "RUN" | "COPY" | "ENV" | "ARG" | "WORKDIR" | "USER" | "CMD" | "ENTRYPOINT" | "SHELL";

export interface Instruction {
  line: number;
  keyword: Keyword;
  flags: Readonly<Record<string, string>>;
  /** Its arguments as one line, without flags; variables are not expanded. */
  text: string;
  /** The arguments as a list if they are JSON. */
  list: string[] | null;
}

export interface Dockerfile {
  /** As a recipe's `from`. */
  from: string;
  /** The image of FROM if it is only a name, which may be a template's; else null. */
  name: string | null;
  instructions: Instruction[];
  escaper: string;
  /** Of all its variables. */
  expansion: Expansion;
  /** Build arguments, for ARG. */
  args: Variables;
  /** ARG before FROM: applies again if another ARG names it. */
  before: Variables;
}

/** Instructions without effect on the root: for other tools. */
const FOR_OTHERS = ["LABEL", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "VOLUME", "MAINTAINER"];
const KNOWN = ["RUN", "COPY", "ENV", "ARG", "WORKDIR", "USER", "CMD", "ENTRYPOINT", "SHELL"];
const FLAGS: Readonly<Record<string, readonly string[]>> = { COPY: ["chown", "chmod", "link"] };
const OF_ARCHIVES = /\.(tar|tgz|tbz2?|txz|tar\.(gz|bz2|xz|zst))$/i;

/** Throws validation_failed with every unsupported line. */
export function readDockerfile(text: string, args: Variables = {}): Dockerfile {
  if (text.length > MAX_DOCKERFILE_BYTES) throw refused([`it has more than ${MAX_DOCKERFILE_BYTES} characters`]);
  if (text.split("\n").length > MAX_LINES) throw refused([`it has more than ${MAX_LINES} lines`]);
  const file = DockerfileParser.parse(text);
  const escaper = file.getEscapeCharacter();
  const wrong: string[] = [];
  const instructions: Instruction[] = [];
  const before: Record<string, string> = {};
  const expansion = new Expansion();
  let from: string | null = null;
  for (const each of file.getInstructions()) {
    const line = each.getRange().start.line + 1;
    const keyword = each.getKeyword();
    const refuse = (why: string) => wrong.push(`line ${line}: ${keyword} ${why}`);
    try {
      const raw = each.getRawArgumentsContent() ?? "";
      const flags = Object.fromEntries(
        ("getFlags" in each ? (each.getFlags as () => FlagLike[])() : []).map((flag) => [
          flag.getName(),
          flag.getValue() ?? "",
        ]),
      );
      if (/(^|\s)<<-?["']?[A-Za-z_]/.test(raw) && ["RUN", "COPY", "ADD"].includes(keyword))
        refuse("with a here-document is not supported");
      else if (keyword === "FROM") {
        if (from !== null) refuse("a second time: stages are not supported");
        from ??= fromOf(joined(raw, escaper), flags, { variables: { ...before, ...known(before, args) }, expansion });
      } else if (FOR_OTHERS.includes(keyword)) continue;
      else if (keyword === "ADD") {
        const sources = wordsOf(joined(raw, escaper), { variables: {}, expansion, escaper }).slice(0, -1);
        if (sources.some((source) => /^(\w+:\/\/|git@)/.test(source)))
          refuse("of a URL is not supported: fetch it with RUN");
        else if (sources.some((source) => OF_ARCHIVES.test(source)))
          refuse("of an archive is not supported: COPY it, and unpack it with RUN");
        else instructions.push(instruction(line, "COPY", flags, joined(raw, escaper)));
      } else if (!KNOWN.includes(keyword)) refuse("is not supported");
      else if (from === null && keyword !== "ARG") refuse("stands before FROM");
      else if (from === null)
        Object.assign(before, argOf(joined(raw, escaper), { variables: before, expansion }, args));
      else instructions.push(instruction(line, keyword as Keyword, flags, joined(raw, escaper)));
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      refuse(error.message);
    }
  }
  if (from === null && wrong.length === 0) wrong.push("it has no FROM");
  if (instructions.length > MAX_INSTRUCTIONS) wrong.push(`it has more than ${MAX_INSTRUCTIONS} instructions`);
  if (wrong.length > 0 || from === null) throw refused(wrong);
  const image = from.replace(/^docker:\/\//, "");
  const name = new RegExp(TEMPLATE_PATTERN).test(image) ? image : null;
  return { from, name, instructions, escaper, expansion, args, before };
}

interface FlagLike {
  getName(): string;
  getValue(): string | null;
}

function instruction(line: number, keyword: Keyword, flags: Record<string, string>, text: string): Instruction {
  const unsupported = Object.keys(flags).filter((flag) => !FLAGS[keyword]?.includes(flag));
  if (unsupported.includes("mount")) {
    throw new Unreadable("--mount is not supported: a --secret of the build is in /run/secrets for every RUN");
  }
  if (unsupported.length > 0) throw new Unreadable(`--${unsupported[0]} is not supported`);
  if (text === "") throw new Unreadable("has no arguments");
  const list = listOf(text);
  if (keyword === "SHELL" && list === null) throw new Unreadable("is not a list of strings");
  return { line, keyword, flags, text, list };
}

/** Text that is not a JSON list of strings is used verbatim, as by other builders. */
function listOf(text: string): string[] | null {
  if (!text.startsWith("[")) return null;
  try {
    const list: unknown = parseJson(text);
    return Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === "string") ? list : null;
  } catch {
    return null;
  }
}

/** Joins continued lines; drops comments and empty lines. */
function joined(raw: string, escaper: string): string {
  let text = "";
  for (const [at, line] of raw.split(/\r?\n/).entries()) {
    if (at > 0 && /^\s*(#|$)/.test(line)) continue;
    const isContinued = line.trimEnd().endsWith(escaper);
    text += isContinued ? line.trimEnd().slice(0, -1) : line;
  }
  return text.trim();
}

/** NAME or NAME=VALUE: the variables from here on. Precedence: build arguments, then VALUE, then `inherited`. */
export function argOf(text: string, reading: Reading, args: Variables, inherited: Variables = {}): Variables {
  const found: Record<string, string> = {};
  for (const word of wordsOf(text, reading)) {
    const [, name = "", value] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === "") throw new Unreadable(`has ${word.slice(0, 100)}, which is not NAME=VALUE`);
    const set = variableOf(args, name) ?? value ?? variableOf(inherited, name);
    if (set !== undefined) found[name] = set;
  }
  return found;
}

const known = (names: Variables, args: Variables) =>
  Object.fromEntries(Object.entries(args).filter(([name]) => Object.hasOwn(names, name)));

function fromOf(text: string, flags: Record<string, string>, reading: Reading): string {
  const unsupported = Object.keys(flags).find((flag) => flag !== "platform");
  if (unsupported !== undefined) throw new Unreadable(`--${unsupported} is not supported`);
  const { platform = "linux/amd64" } = flags;
  if (!/^(linux\/(amd64|x86_64)|\$(BUILD|TARGET)PLATFORM)$/.test(platform)) {
    throw new Unreadable("is for another platform than linux/amd64");
  }
  const [image = "", as, name, ...more] = wordsOf(text, reading);
  const isNamed = as !== undefined && as.toUpperCase() === "AS" && name !== undefined && more.length === 0;
  if (as !== undefined && !isNamed) throw new Unreadable("has more than an image and its name");
  if (image === "scratch") throw new Unreadable("scratch is not supported: begin with an image");
  const reference = /^(oci|docker-archive):\//.test(image) ? image : `docker://${image}`;
  if (!new RegExp(REFERENCE_PATTERN).test(reference)) throw new Unreadable(`names no image: ${image.slice(0, 200)}`);
  return reference;
}

/** `wrong`: the errors, as sentences without full stops. */
export function refused(wrong: readonly string[]): ServiceError {
  return new ServiceError("validation_failed", {
    detail: `The Dockerfile is not supported: ${wrong.slice(0, 10).join("; ")}.`,
    hint: "Build it with docker, and import the image: `docker save IMAGE | roomd template import NAME -`.",
  });
}
