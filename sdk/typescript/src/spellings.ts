/**
 * Names that other sandbox SDKs use, with the name that has the same effect here. They exist in the types only: a program that uses one
 * does not compile, and the message of the compiler names the alternative.
 */

/** Key of `UseInstead`, which no value has. */
declare const alternative: unique symbol;

/** A name of another SDK. `Text` names the alternative. */
export interface UseInstead<Text extends string> {
  /** The alternative. */
  readonly [alternative]: Text;
}

/** Options of commands by other names. */
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

/** Options of `Sandbox.create` by other names. */
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

/** Members of a sandbox by other names. */
export abstract class SandboxMembers {
  /** @deprecated Use `exec`, or `start` for a command that is left running. */
  declare readonly commands: UseInstead<"sandbox.exec(command), or sandbox.start(command) to leave it running">;
  /** @deprecated Use `exec`, or `start` for a command that is left running. */
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
