/** A session of the OpenAI Agents SDK, whose tools run commands and change files in one sandbox of roomd. */
import { posix } from "node:path";
import type { Editor, ToolOutputImage } from "@openai/agents-core";
import {
  type Entry,
  type ExecCommandArgs,
  type ExposedPortEndpoint,
  type ListDirectoryArgs,
  type Manifest,
  type MaterializeEntryArgs,
  normalizeExposedPort,
  normalizeRelativePath,
  type ReadFileArgs,
  SandboxApplyPatchDecodeError,
  SandboxApplyPatchFileNotFoundError,
  SandboxApplyPatchPathError,
  type SandboxDirectoryEntry,
  type SandboxExecResult,
  SandboxInvalidManifestPathError,
  SandboxRuntimeError,
  type SandboxSession,
  type SandboxSessionState,
  SandboxWorkspaceReadNotFoundError,
  type ViewImageArgs,
  WorkspacePathPolicy,
  type WriteStdinArgs,
} from "@openai/agents-core/sandbox";
import {
  elapsedSeconds,
  formatExecResponse,
  imageOutputFromBytes,
  MAX_VIEW_IMAGE_BYTES,
  mergeManifestDelta,
  mergeManifestEntryDelta,
  shellQuote,
  truncateOutput,
  withExclusiveSandboxManifestMutation,
} from "@openai/agents-core/sandbox/internal";
import { applyDiff } from "@openai/agents-core/utils";
import { InvalidRequestError, NotFoundError } from "../errors.ts";
import { type Execution, MAX_COMMAND_MS } from "../execution.ts";
import type { Sandbox } from "../sandbox.ts";
import type { UserFiles } from "../user-files.ts";
import { Process } from "./process.ts";
import { makeAccounts, materialize, requireSupported, requireSupportedEntry } from "./workspace.ts";

export interface RoomdSessionState extends SandboxSessionState {
  roomId: string;
  agentId: string;
  /** Identifies this sandbox: the agent may get another one later. */
  sandboxId: string;
  environment: Record<string, string>;
}

export type SessionOptions = {
  /** Time limit of a command in ms; 60 minutes by default, 7 days at most. */
  commandTimeoutMs?: number;
};

const DEFAULT_COMMAND_MS = 3_600_000;
const DEFAULT_EXEC_WAIT_MS = 10_000;
const DEFAULT_STDIN_WAIT_MS = 250;
/** Maximum number of concurrent processes of one session. */
const MAX_PROCESSES = 64;
/** Read as a whole. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** The byte that a terminal sends for Ctrl-C. */
const INTERRUPT = "\u0003";
const DRIVE = "/mnt/drive";
/** The default shell: bash, or sh if the image has no bash. */
const IN_SHELL = '[ -n "$1" ] || set -- "$(command -v bash || echo sh)" "$2" "$3"; exec "$@"';
const TYPES: Record<string, SandboxDirectoryEntry["type"]> = { file: "file", directory: "dir" };

export class RoomdSandboxSession implements SandboxSession<RoomdSessionState> {
  state: RoomdSessionState;
  readonly #sandbox: Sandbox;
  readonly #commandTimeoutMs: number;
  /** Null if the sandbox outlives the session. */
  readonly #end: (() => Promise<void>) | null;
  readonly #processes = new Map<number, Process>();
  readonly #closed = new AbortController();
  #lastProcess = 0;
  #closing: Promise<void> | null = null;

  constructor(
    sandbox: Sandbox,
    state: RoomdSessionState,
    end: (() => Promise<void>) | null,
    { commandTimeoutMs = DEFAULT_COMMAND_MS }: SessionOptions = {},
  ) {
    this.#sandbox = sandbox;
    this.state = state;
    this.#end = end;
    this.#commandTimeoutMs = Math.min(commandTimeoutMs, MAX_COMMAND_MS);
  }

  async running(): Promise<boolean> {
    try {
      return (await this.#sandbox.get()).state === "running";
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Wakes a sandbox from standby or hibernation. */
  async start(): Promise<void> {
    if (!(await this.running())) await this.#sandbox.resume();
  }

  supportsPty(): boolean {
    return true;
  }

  async exec(args: ExecCommandArgs): Promise<SandboxExecResult> {
    const started = Date.now();
    for (const [id, { isOver }] of this.#processes) {
      if (isOver && this.#processes.size >= MAX_PROCESSES) this.#processes.delete(id);
    }
    if (this.#processes.size >= MAX_PROCESSES) {
      return refused(`${MAX_PROCESSES} commands are running. End one with write_stdin first.`, started);
    }
    const id = ++this.#lastProcess;
    let execution: Execution;
    try {
      execution = await this.#sandbox.start(commandOf(args), {
        cwd: posix.resolve(this.state.manifest.root, args.workdir?.trim() ?? ""),
        env: this.state.environment,
        commandTimeoutMs: this.#commandTimeoutMs,
        ...(args.runAs ? { user: args.runAs } : {}),
      });
    } catch (error) {
      // A missing directory or user is reported to the model as a shell would report it: the model does not see thrown errors.
      if (error instanceof InvalidRequestError) return refused(error.message, started);
      throw error;
    }
    const process = new Process(execution, args.tty ?? false, this.#closed.signal);
    this.#processes.set(id, process);
    return this.#shown(id, process, started, args.yieldTimeMs ?? DEFAULT_EXEC_WAIT_MS, args.maxOutputTokens);
  }

  async execCommand(args: ExecCommandArgs): Promise<string> {
    return formatExecResponse(await this.exec(args));
  }

  async writeStdin({ sessionId, chars = "", yieldTimeMs, maxOutputTokens }: WriteStdinArgs): Promise<string> {
    const started = Date.now();
    const process = this.#processes.get(sessionId);
    if (!process) {
      const text = `No running command has the session ID ${sessionId}. Start it again with exec_command.`;
      return formatExecResponse(refused(text, started));
    }
    const wrong = await written(process, chars).then(
      () => null,
      (error: unknown) => error,
    );
    const waitMs = yieldTimeMs ?? DEFAULT_STDIN_WAIT_MS;
    const shown = await this.#shown(sessionId, process, started, waitMs, maxOutputTokens);
    // A command that has ended takes no input: its result is more informative.
    if (wrong !== null && shown.sessionId !== undefined) throw wrong;
    return formatExecResponse(shown);
  }

  async #shown(
    id: number,
    process: Process,
    started: number,
    waitMs: number,
    mostTokens: number | undefined,
  ): Promise<SandboxExecResult> {
    await process.until(waitMs);
    if (process.isOver) this.#processes.delete(id);
    const exitCode = process.exitCode();
    const { output, stdout, stderr } = process.take();
    const { text, originalTokenCount } = truncateOutput(output, mostTokens);
    return {
      output: text,
      stdout,
      stderr,
      wallTimeSeconds: elapsedSeconds(started),
      ...(exitCode === null ? { sessionId: id } : { exitCode }),
      ...(originalTokenCount === undefined ? {} : { originalTokenCount }),
    };
  }

  createEditor(runAs?: string): Editor {
    const files = this.#sandbox.files.as(runAs);
    const placeOf = (path: string) => this.#placeOf(path, true);
    return {
      createFile: async ({ path, diff }) => {
        const place = placeOf(path);
        if (await files.stat(place)) {
          throw new SandboxApplyPatchPathError(`${path} is there already: update it instead.`);
        }
        await files.write(place, applyDiff("", diff, "create"));
      },
      updateFile: async ({ path, diff, moveTo }) => {
        const place = placeOf(path);
        const target = moveTo === undefined ? place : placeOf(moveTo);
        const text = textOf(path, await this.#read(path, MAX_FILE_BYTES, files).catch(notFound(path)));
        await files.write(target, applyDiff(text, diff));
        if (target !== place) await files.delete(place);
      },
      deleteFile: async ({ path }) => {
        if (!(await files.delete(placeOf(path)))) notFound(path)(null);
      },
    };
  }

  async viewImage({ path, runAs }: ViewImageArgs): Promise<ToolOutputImage> {
    // Of a file that is too large, only enough bytes to detect it.
    return imageOutputFromBytes(
      path,
      await this.#read(path, MAX_VIEW_IMAGE_BYTES + 1, this.#sandbox.files.as(runAs), true),
    );
  }

  readFile({ path, maxBytes, runAs }: ReadFileArgs): Promise<Uint8Array> {
    return this.#read(path, maxBytes ?? MAX_FILE_BYTES, this.#sandbox.files.as(runAs), maxBytes !== undefined);
  }

  async listDir({ path, runAs }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
    const { path: place, workspaceRelativePath: relative = place } = this.#policy().resolve(path);
    const entries = await this.#sandbox.files.as(runAs).list(place);
    if (entries === null) throw new SandboxWorkspaceReadNotFoundError(`${path}: No such directory`);
    return entries.map(({ name, kind }) => ({
      name,
      path: [relative, name].filter(Boolean).join("/"),
      type: TYPES[kind] ?? "other",
    }));
  }

  async pathExists(path: string, runAs?: string): Promise<boolean> {
    return (await this.#sandbox.files.as(runAs).stat(this.#placeOf(path))) !== null;
  }

  async directoryExists(path: string, runAs?: string): Promise<boolean> {
    return (await this.#sandbox.files.as(runAs).stat(this.#placeOf(path)))?.kind === "directory";
  }

  materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void> {
    return withExclusiveSandboxManifestMutation(this.state, async () => {
      requireSupportedEntry(path, entry);
      const { workspaceRelativePath: name } = this.#policy().resolve(path, { forWrite: true });
      if (name === undefined) throw new SandboxInvalidManifestPathError(`${path} is not in the workspace.`);
      const { manifest } = this.state;
      const entries: Record<string, Entry> = { [normalizeRelativePath(name)]: entry };
      await materialize(this.#sandbox, { ...manifest, entries }, runAs);
      this.state.manifest = mergeManifestEntryDelta(manifest, name, entry);
    });
  }

  applyManifest(manifest: Manifest, runAs?: string): Promise<void> {
    return withExclusiveSandboxManifestMutation(this.state, async () => {
      requireSupported(manifest);
      const merged = mergeManifestDelta(this.state.manifest, manifest);
      const environment = await manifest.resolveEnvironment();
      await makeAccounts(this.#sandbox, merged);
      await materialize(this.#sandbox, { ...merged, entries: manifest.entries }, runAs);
      this.state.environment = { ...this.state.environment, ...environment };
      this.state.manifest = merged;
    });
  }

  /** The caller cannot be given a header here: the port is public, with a URL that cannot be guessed. */
  async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
    const { url } = await this.#sandbox.exposePort(normalizeExposedPort(port), { visibility: "public" });
    const { protocol, hostname, port: at } = new URL(url);
    const tls = protocol === "https:";
    // If the operator has configured no domain for ports, the URL has a path: only `url` has it.
    return { host: hostname, port: Number(at || (tls ? 443 : 80)), tls, url };
  }

  /** Ends its commands, and destroys its sandbox if that was created for it. */
  close(): Promise<void> {
    this.#closing ??= this.#close().catch((error: unknown) => {
      this.#closing = null;
      throw error;
    });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const running = [...this.#processes.values()];
    this.#closed.abort();
    await (this.#end ? this.#end() : Promise.all(running.map((process) => process.kill())));
    this.#processes.clear();
  }

  /**
   * File tools resolve paths relative to the workspace, and paths must not leave it textually: links may lead out, the virtual machine is
   * the boundary.
   */
  #policy(): WorkspacePathPolicy {
    const { root, extraPathGrants } = this.state.manifest;
    return new WorkspacePathPolicy({ root, extraPathGrants: [...extraPathGrants, { path: DRIVE }] });
  }

  #placeOf(path: string | undefined, forWrite = false): string {
    return this.#policy().resolve(path, { forWrite }).path;
  }

  /** Reads at most `mostBytes`. The rest of a longer file is dropped if `mayCut`, otherwise it throws. */
  async #read(path: string, mostBytes: number, files: UserFiles, mayCut = false): Promise<Uint8Array> {
    const parts = await files.open(this.#placeOf(path));
    if (parts === null) throw new SandboxWorkspaceReadNotFoundError(`${path}: No such file`);
    const read: Uint8Array[] = [];
    let size = 0;
    for await (const part of parts) {
      read.push(part);
      size += part.byteLength;
      if (size > mostBytes) break;
    }
    if (size > mostBytes && !mayCut) {
      throw new SandboxRuntimeError(`${path} is larger than ${mostBytes} bytes: read a part of it with a command.`);
    }
    return Buffer.concat(read).subarray(0, mostBytes);
  }
}

/** Result of a command that did not start. */
function refused(text: string, started: number): SandboxExecResult {
  return { output: text, stdout: "", stderr: text, wallTimeSeconds: elapsedSeconds(started), exitCode: 1 };
}

function commandOf({ cmd, shell = "", login = true, tty = false }: ExecCommandArgs): string[] {
  const argv = ["sh", "-c", IN_SHELL, "sh", shell, login ? "-lc" : "-c", cmd];
  if (!tty) return argv;
  return ["script", "-qec", `stty rows 24 cols 80; exec ${argv.map(shellQuote).join(" ")}`, "/dev/null"];
}

/** In a terminal, Ctrl-C is an ordinary character. */
async function written(process: Process, text: string): Promise<void> {
  if (process.hasTerminal) return text === "" ? undefined : process.write(text);
  if (text.includes(INTERRUPT)) await process.interrupt();
  const rest = text.replaceAll(INTERRUPT, "");
  if (rest !== "") await process.write(rest);
}

function textOf(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new SandboxApplyPatchDecodeError(`${path} is not UTF-8 text: change it with a command.`);
  }
}

/** Throws that the file to patch does not exist, or rethrows another error. */
function notFound(path: string): (error: unknown) => never {
  return (error) => {
    if (error !== null && !(error instanceof SandboxWorkspaceReadNotFoundError)) throw error;
    throw new SandboxApplyPatchFileNotFoundError(`${path} is not there: create it instead.`);
  };
}
