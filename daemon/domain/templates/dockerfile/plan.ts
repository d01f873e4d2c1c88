/** Plan of a Dockerfile on its image: steps for the guest that runs them, and the defaults of commands afterwards. Pure. */
import { posix } from "node:path";
import type { ImageDefaults } from "../../../../shared/agent-protocol/messages.ts";
import { argOf, type Dockerfile, type Instruction, refused } from "./read.ts";
import { type Reading, Unreadable, wordOf, wordsOf } from "./tokens.ts";

/** The image's configuration. */
export interface BaseImage {
  defaults: ImageDefaults;
  entrypoint: readonly string[];
}

export interface RunStep {
  title: string;
  argv: string[];
  env: Record<string, string>;
  cwd: string;
  /** In the format of an image's User. */
  user: string;
}

export interface CopyStep {
  title: string;
  /** Patterns, beneath the context. */
  sources: string[];
  /** Absolute; a trailing slash denotes a directory. */
  to: string;
  /** `user`, or `user:group`. */
  chown: string | null;
  mode: number | null;
}

export type PlannedStep =
  | ({ kind: "run" } & RunStep)
  | ({ kind: "copy" } & CopyStep)
  | { kind: "directory"; path: string; title: string };

interface State {
  env: Record<string, string>;
  args: Record<string, string>;
  cwd: string;
  user: string | null;
  shell: string[];
  entrypoint: string[];
  cmd: string[];
}

/** Throws validation_failed with every unsupported line. */
export function planDockerfile(
  file: Dockerfile,
  { defaults, entrypoint }: BaseImage,
): { steps: PlannedStep[]; defaults: ImageDefaults } {
  const state: State = {
    ...{ env: { ...defaults.env }, args: {}, cwd: defaults.cwd ?? "/", user: defaults.user },
    ...{ shell: ["/bin/sh", "-c"], entrypoint: [...entrypoint], cmd: (defaults.start ?? []).slice(entrypoint.length) },
  };
  const wrong: string[] = [];
  const steps: PlannedStep[] = [];
  for (const each of file.instructions) {
    try {
      const step = apply(state, each, file);
      if (step) steps.push(step);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      wrong.push(`line ${each.line}: ${each.keyword} ${error.message}`);
    }
  }
  if (wrong.length > 0) throw refused(wrong);
  const start = [...state.entrypoint, ...state.cmd];
  const { env, cwd, user } = state;
  return { steps, defaults: { env, cwd, user, start: start.length === 0 ? null : start } };
}

function apply(state: State, { keyword, text, list, flags }: Instruction, file: Dockerfile): PlannedStep | null {
  const { escaper, expansion } = file;
  const reading = { variables: { ...state.args, ...state.env }, expansion, escaper };
  const title = `${keyword} ${text}`;
  const command = () => list ?? [...state.shell, text];
  const run = { cwd: state.cwd, env: { ...state.args, ...state.env }, user: state.user ?? "root" };
  switch (keyword) {
    case "RUN":
      return { kind: "run", title, argv: command(), ...run };
    case "COPY":
      return { kind: "copy", title, ...copyOf(list ?? wordsOf(text, reading), flags, state.cwd, reading) };
    case "ENV":
      Object.assign(state.env, envOf(text, reading));
      requireBounded(state.env);
      return null;
    case "ARG":
      Object.assign(state.args, argOf(text, { variables: reading.variables, expansion }, file.args, file.before));
      requireBounded(state.args);
      return null;
    case "WORKDIR": {
      const path = posix.resolve(state.cwd, wordOf(text, reading));
      state.cwd = path;
      return { kind: "directory", title, path };
    }
    case "USER":
      state.user = wordOf(text, reading);
      if (!/^[A-Za-z0-9_.][\w.-]*(:[A-Za-z0-9_.][\w.-]*)?$/.test(state.user)) throw new Unreadable("names no user");
      return null;
    case "SHELL":
      state.shell = list ?? [];
      return null;
    case "CMD":
      state.cmd = command();
      return null;
    case "ENTRYPOINT":
      state.entrypoint = command();
      // The image's arguments (CMD) belong to its own entry point.
      state.cmd = [];
      return null;
  }
}

/** Linux limit for a program's environment. */
const MAX_ENVIRONMENT = 524_288;

function requireBounded(variables: Record<string, string>): void {
  const size = Object.entries(variables).reduce((sum, [name, value]) => sum + name.length + value.length + 2, 0);
  if (size > MAX_ENVIRONMENT) throw new Unreadable(`makes an environment of more than ${MAX_ENVIRONMENT} characters`);
}

function envOf(text: string, reading: Reading): Record<string, string> {
  const [, name, rest] = /^([A-Za-z_][\w.-]*)\s+(.*)$/s.exec(text) ?? [];
  if (name !== undefined && rest !== undefined) return { [name]: wordOf(rest, reading) };
  const pairs = wordsOf(text, reading).map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw new Unreadable(`has ${word.slice(0, 100)}, which is not NAME=VALUE`);
    return [word.slice(0, at), word.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

function copyOf(
  words: readonly string[],
  { chown, chmod }: Instruction["flags"],
  cwd: string,
  { variables, expansion }: Reading,
): Omit<CopyStep, "title"> {
  const sources = words.slice(0, -1);
  const [target = ""] = words.slice(-1);
  if (sources.length === 0) throw new Unreadable("needs a source and a destination");
  const isDirectory = target.endsWith("/") || target === "." || sources.length > 1;
  const to = posix.resolve(cwd, target);
  const owner = chown === undefined ? null : wordOf(chown, { variables, expansion });
  if (owner !== null && !/^[\w.][\w.-]*(:[\w.][\w.-]*)?$/.test(owner)) throw new Unreadable("--chown names no user");
  if (chmod !== undefined && !/^[0-7]{3,4}$/.test(chmod)) throw new Unreadable("--chmod is not an octal number");
  return {
    sources: [...sources],
    to: isDirectory && to !== "/" ? `${to}/` : to,
    chown: owner,
    mode: chmod === undefined ? null : Number.parseInt(chmod, 8),
  };
}
