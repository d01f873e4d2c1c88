/** A sandbox as a session of the AI SDK, whose tools run commands and change files in it. The names there are experimental. */
import { Readable } from "node:stream";
import type { SandboxProcess, SandboxSession, SpawnOptions, WritableSandboxProcess } from "./ai-sdk/session.ts";
import { unlessAborted } from "./deadline.ts";
import { RoomdError, UsageError } from "./errors.ts";
import type { CommandOptions, Execution } from "./execution.ts";
import { exitCodeOf } from "./exit-code.ts";
import { gathered, orNull } from "./files.ts";
import type { Sandbox } from "./sandbox.ts";
import type { FileBody } from "./transport.ts";

export type { SandboxProcess, SandboxSession, SpawnOptions, WritableSandboxProcess } from "./ai-sdk/session.ts";
export { type SandboxTool, type SandboxTools, sandboxTools } from "./ai-sdk/tools.ts";

const HOME = "/root";
/** Maximum of unread bytes of a stream with a reader; above it the command waits. */
const AHEAD_BYTES = 1024 * 1024;
/** Maximum of buffered bytes of a stream without a reader. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/** A session in an existing sandbox; the sandbox's creator has to destroy it. */
export function sandboxSession(sandbox: Sandbox): SandboxSession {
  const { files } = sandbox;
  const signalOf = (signal?: AbortSignal) => (signal ? { signal } : {});
  const write = async (path: string, content: FileBody, signal?: AbortSignal) =>
    void (await files.write(inHome(path), content, signalOf(signal)));
  return {
    description: `A Debian virtual machine in which you are root. Commands run in ${HOME} by default. Put files for other agents into /mnt/drive.`,
    readFile: async ({ path, abortSignal }) => {
      const file = await orNull(files.open(inHome(path), signalOf(abortSignal)));
      return file && (Readable.toWeb(Readable.from(file.stream)) as ReadableStream<Uint8Array>);
    },
    readBinaryFile: ({ path, abortSignal }) => orNull(files.read(inHome(path), signalOf(abortSignal))),
    readTextFile: async ({ path, encoding, startLine = 1, endLine, abortSignal }) => {
      const bytes = await orNull(files.read(inHome(path), signalOf(abortSignal)));
      if (bytes === null) return null;
      const text = new TextDecoder(encoding as "utf-8" | undefined).decode(bytes);
      if (startLine === 1 && endLine === undefined) return text;
      return text
        .split("\n")
        .slice(startLine - 1, endLine)
        .join("\n");
    },
    writeFile: ({ path, content, abortSignal }) =>
      write(path, content as unknown as AsyncIterable<Uint8Array>, abortSignal),
    writeBinaryFile: ({ path, content, abortSignal }) => write(path, content, abortSignal),
    writeTextFile: ({ path, content, encoding, abortSignal }) =>
      write(path, Buffer.from(content, encoding as BufferEncoding | undefined), abortSignal),
    stat: async ({ path, abortSignal }) => {
      const found = await orNull(files.stat(inHome(path), signalOf(abortSignal)));
      return found && { type: found.type === "symlink" ? "other" : found.type, size: found.size_bytes };
    },
    listDirectory: async ({ path, abortSignal }) => {
      const entries = await orNull(gathered(files.list(inHome(path), signalOf(abortSignal))));
      return entries?.map(({ name, type }) => ({ name, type })) ?? null;
    },
    deleteFile: async ({ path, abortSignal }) => {
      const [at, options] = [inHome(path), signalOf(abortSignal)];
      const entry = await orNull(files.stat(at, { ...options, follow: false }));
      if (entry?.type === "directory") throw new UsageError(`${path}: Is a directory.`);
      return entry !== null && files.delete(at, options);
    },
    // The type's three overloads differ in the presence of stdin.
    spawn: (options: SpawnOptions) => spawn(sandbox, options) as Promise<WritableSandboxProcess>,
    run: async (options) => {
      const done = await sandbox.exec(options.command, optionsOf(options));
      return { exitCode: exitCodeOf(done), stdout: done.stdout, stderr: done.stderr };
    },
  };
}

const inHome = (path: string) => (path.startsWith("/") ? path : `${HOME}/${path}`);

function optionsOf({ workingDirectory, env, abortSignal }: SpawnOptions): CommandOptions {
  return {
    cwd: inHome(workingDirectory ?? ""),
    ...(env === undefined ? {} : { env }),
    ...(abortSignal === undefined ? {} : { signal: abortSignal, killOnAbort: true }),
  };
}

async function spawn(sandbox: Sandbox, options: SpawnOptions): Promise<SandboxProcess | WritableSandboxProcess> {
  const startOptions = optionsOf(options);
  // No time limit: spawned processes include servers.
  const execution = await sandbox.start(options.command, { ...startOptions, timeoutMs: 0 });
  const streams = { stdout: new OutputStream(), stderr: new OutputStream() };
  const both = [streams.stdout, streams.stderr];
  const end = (error?: unknown) => {
    for (const each of both) each.end(error);
  };
  const done = execution.wait({
    ...startOptions,
    onOutput: (name, bytes) => unlessAborted(streams[name].add(bytes), options.abortSignal),
    maxOutputBytes: 0,
  });
  // A broken stream ends with an error, not with a regular end. A caller that does not await the result gets no unhandled rejection.
  done.then(() => end(), end);
  if (!options.stdin) await execution.end();
  return {
    stdout: streams.stdout.readable,
    stderr: streams.stderr.readable,
    wait: async () => ({ exitCode: exitCodeOf(await done) }),
    kill: async () => {
      // Unblocks the output, since the end of the command arrives after it.
      for (const each of both) each.release();
      await execution.kill();
    },
    ...(options.stdin ? { stdin: inputOf(execution) } : {}),
  };
}

/** A command's output, for a reader at any pace. */
class OutputStream {
  readonly readable: ReadableStream<Uint8Array>;
  /** Null once the stream is closed or cancelled. */
  #control: ReadableStreamDefaultController<Uint8Array> | null = null;
  #isReleased = false;
  #hasRoom = () => {};

  constructor() {
    const source = {
      start: (control: ReadableStreamDefaultController<Uint8Array>) => {
        this.#control = control;
      },
      pull: () => this.#hasRoom(),
      cancel: () => this.#close(),
    };
    this.readable = new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD_BYTES }));
  }

  /** Resolves once more may be added. */
  async add(bytes: Uint8Array): Promise<void> {
    const room = new Promise<void>((resolve) => {
      this.#hasRoom = resolve;
    });
    this.#control?.enqueue(bytes);
    const over = -(this.#control?.desiredSize ?? 1);
    if (over < 0 || this.#isReleased) return;
    // With a reader, the command waits, as for a pipe. Without one, it is never blocked.
    if (this.readable.locked) return room;
    if (over > MAX_UNREAD_BYTES) this.end(new RoomdError("More than 16 MiB were written without a reader."));
  }

  end(error?: unknown): void {
    if (error === undefined) this.#control?.close();
    else this.#control?.error(error);
    this.#close();
  }

  /** Ends back-pressure: the command no longer waits for this reader. */
  release(): void {
    this.#isReleased = true;
    this.#hasRoom();
  }

  #close(): void {
    this.#control = null;
    this.#hasRoom();
  }
}

function inputOf(execution: Execution): WritableStream<Uint8Array> {
  return new WritableStream({ write: (bytes) => execution.write(bytes), close: () => execution.end() });
}
