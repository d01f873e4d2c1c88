/**
 * Names from other sandbox SDKs, with the name that has the same effect here: a program that uses one does not compile, and the compiler's
 * message names the alternative. Without a compiler, the program gets a UsageError that names it.
 */
import { UsageError } from "./errors.ts";

/** Key of `UseInstead`, which no value has. */
declare const alternative: unique symbol;

/** A name of another SDK. `Text` names the alternative. */
export interface UseInstead<Text extends string> {
  /** The alternative. */
  readonly [alternative]: Text;
}

/** Options of commands by names of other SDKs. */
export interface CommandSpellings {
  /** @deprecated Use `env`. */
  envs?: UseInstead<"env">;
  /** @deprecated Use `timeoutMs` (ms) for the time limit of the command. */
  timeout?: UseInstead<"timeoutMs, in ms">;
  /** @deprecated Use `timeoutMs` (ms) for the time limit of the command. */
  timeoutSec?: UseInstead<"timeoutMs, in ms">;
  /** @deprecated Use `sandbox.start(command)`, which leaves the command running. */
  background?: UseInstead<"sandbox.start(command)">;
  /** @deprecated Use `sandbox.start(command)`, which leaves the command running. */
  detached?: UseInstead<"sandbox.start(command)">;
  /** @deprecated Use `cwd`. */
  workDir?: UseInstead<"cwd">;
}

/** Options of `Sandbox.create` by names of other SDKs. */
export interface SandboxSpellings {
  /** @deprecated Use `env`. */
  envs?: UseInstead<"env">;
  /** @deprecated Use `env`. */
  envVars?: UseInstead<"env">;
  /** @deprecated Use `labels`. */
  metadata?: UseInstead<"labels">;
  /** @deprecated Use `maxDurationSeconds` for the lifetime, `waitMs` for the longest wait. */
  timeout?: UseInstead<"maxDurationSeconds for the lifetime, waitMs for the longest wait">;
  /** @deprecated Use `idleTimeoutSeconds` and `lifecycle`. */
  autoStopInterval?: UseInstead<"idleTimeoutSeconds, in seconds">;
  /** @deprecated Use `lifecycle: { on_idle: "hibernate" }`, which is the default. */
  autoPause?: UseInstead<"lifecycle: { on_idle: 'hibernate' }, which is the default">;
  /** @deprecated Use `vcpus` and `memoryMib`. */
  resources?: UseInstead<"vcpus and memoryMib">;
  /** @deprecated Use `template`. */
  image?: UseInstead<"template">;
  /** @deprecated Use `template`. */
  runtime?: UseInstead<"template">;
  /** @deprecated Use `egress`. */
  networkPolicy?: UseInstead<"egress">;
  /** @deprecated Use `sandbox.exposePort(port)`. */
  ports?: UseInstead<"sandbox.exposePort(port)">;
}

/** Members of a sandbox by names of other SDKs. */
export abstract class SandboxMembers {
  /** @deprecated Use `exec`, or `start` for a background command. */
  declare readonly commands: UseInstead<"sandbox.exec(command), or sandbox.start(command) to leave it running">;
  /** @deprecated Use `exec`, or `start` for a background command. */
  declare readonly process: UseInstead<"sandbox.exec(command), or sandbox.start(command) to leave it running">;
  /** @deprecated Use `exec`. */
  declare readonly runCommand: UseInstead<"sandbox.exec(command)">;
  /** @deprecated Use `exec`. */
  declare readonly runCode: UseInstead<"sandbox.exec(['python3', '-c', code])">;
  /** @deprecated Use `files`. */
  declare readonly fs: UseInstead<"sandbox.files">;
  /** @deprecated Use `openTerminal`. */
  declare readonly pty: UseInstead<"sandbox.openTerminal()">;
  /** @deprecated Use `destroy`. */
  declare readonly kill: UseInstead<"sandbox.destroy()">;
  /** @deprecated Use `destroy`, or `hibernate` to continue later. */
  declare readonly stop: UseInstead<"sandbox.destroy(), or sandbox.hibernate() to continue later">;
  /** @deprecated Use `destroy`. */
  declare readonly delete: UseInstead<"sandbox.destroy()">;
  /** @deprecated Use `hibernate`, or `standby` to keep the memory. */
  declare readonly pause: UseInstead<"sandbox.hibernate(), or sandbox.standby() to keep the memory">;
  /** @deprecated Use `exposePort`, which gives the URL. */
  declare readonly getHost: UseInstead<"(await sandbox.exposePort(port)).url">;
  /** @deprecated Use `exposePort`, which gives the URL. */
  declare readonly getPreviewLink: UseInstead<"(await sandbox.exposePort(port)).url">;
  /** @deprecated Use `exposePort`, which gives the URL. */
  declare readonly domain: UseInstead<"(await sandbox.exposePort(port)).url">;
  /** @deprecated Use `get`. */
  declare readonly getInfo: UseInstead<"sandbox.get()">;
  /** @deprecated Use `files.write`. */
  declare readonly writeFiles: UseInstead<"sandbox.files.write(path, content)">;
  /** @deprecated Use `files.read`. */
  declare readonly readFile: UseInstead<"sandbox.files.read(path)">;
  /** @deprecated Use `setTimeout`. */
  declare readonly extendTimeout: UseInstead<"sandbox.setTimeout(ms), which counts from now">;
}

/** The alternatives in the types of `NamedOperation`. */
type Alternatives<Named> = {
  [Name in keyof Named]-?: Exclude<Named[Name], undefined> extends UseInstead<infer Text> ? Text : never;
};

/** Other SDKs' names for options of commands, with their alternatives. */
export const COMMAND_SPELLINGS: Alternatives<CommandSpellings> = {
  envs: "env",
  timeout: "timeoutMs, in ms",
  timeoutSec: "timeoutMs, in ms",
  background: "sandbox.start(command)",
  detached: "sandbox.start(command)",
  workDir: "cwd",
};

/** Other SDKs' names for options of `Sandbox.create`, with their alternatives. */
export const SANDBOX_SPELLINGS: Alternatives<SandboxSpellings> = {
  envs: "env",
  envVars: "env",
  metadata: "labels",
  timeout: "maxDurationSeconds for the lifetime, waitMs for the longest wait",
  autoStopInterval: "idleTimeoutSeconds, in seconds",
  autoPause: "lifecycle: { on_idle: 'hibernate' }, which is the default",
  resources: "vcpus and memoryMib",
  image: "template",
  runtime: "template",
  networkPolicy: "egress",
  ports: "sandbox.exposePort(port)",
};

const MEMBERS: Alternatives<SandboxMembers> = {
  commands: "sandbox.exec(command), or sandbox.start(command) to leave it running",
  process: "sandbox.exec(command), or sandbox.start(command) to leave it running",
  runCommand: "sandbox.exec(command)",
  runCode: "sandbox.exec(['python3', '-c', code])",
  fs: "sandbox.files",
  pty: "sandbox.openTerminal()",
  kill: "sandbox.destroy()",
  stop: "sandbox.destroy(), or sandbox.hibernate() to continue later",
  delete: "sandbox.destroy()",
  pause: "sandbox.hibernate(), or sandbox.standby() to keep the memory",
  getHost: "(await sandbox.exposePort(port)).url",
  getPreviewLink: "(await sandbox.exposePort(port)).url",
  domain: "(await sandbox.exposePort(port)).url",
  getInfo: "sandbox.get()",
  writeFiles: "sandbox.files.write(path, content)",
  readFile: "sandbox.files.read(path)",
  extendTimeout: "sandbox.setTimeout(ms), which counts from now",
};

for (const [name, alternative] of Object.entries(MEMBERS)) {
  Object.defineProperty(SandboxMembers.prototype, name, {
    configurable: true,
    get() {
      throw new UsageError(`A sandbox has no ${name}: use ${alternative}.`);
    },
  });
}

/** Throws UsageError for options that a method does not have and would ignore. */
export function checkOptions(
  method: string,
  options: object,
  known: Readonly<Record<string, true>>,
  spellings: Readonly<Record<string, string>>,
): void {
  if (typeof options !== "object" || Array.isArray(options)) {
    throw new UsageError(`${method} takes its options as an object: it was given ${JSON.stringify(options)}.`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, name)) continue;
    const use = Object.hasOwn(spellings, name) ? `: use ${spellings[name]}` : "";
    throw new UsageError(`${method} has no option ${name}${use}.`);
  }
}

/** Names that a caller gave as a list; throws UsageError for a single string. */
export function namesOf(names: readonly string[], method: string): string[] {
  if (Array.isArray(names)) return [...names];
  const example = typeof names === "string" ? [names] : ["left", "right"];
  throw new UsageError(`${method} takes a list of names, such as ${JSON.stringify(example)}.`);
}
