/**
 * Files of a sandbox as one of its users sees them, accessed by commands of that user: with that user's permissions, and slower than
 * `Files`. The image needs a shell and GNU find.
 */
import type { Client } from "./client.ts";
import { inTime } from "./deadline.ts";
import { RoomdError } from "./errors.ts";
import { type CommandOptions, type CommandResult, Execution, type SandboxName } from "./execution.ts";
import type { CallOptions, FileBody } from "./transport.ts";

type FileKind = "file" | "directory" | "symlink" | "other";

interface UserFileEntry {
  name: string;
  kind: FileKind;
  size: number;
  modifiedAt: Date;
}

type FileOptions = CallOptions & Pick<CommandOptions, "user">;

const LATE = "The command has not ended in time and continues.";
/** Read by one command. */
const PART_BYTES = 4 * 1024 * 1024;
/** Exit code of the commands here for a missing file. */
const NOT_THERE = 44;
const KINDS: Record<string, FileKind> = { f: "file", d: "directory", l: "symlink" };

const ifThere = (command: string) => `[ -e "$1" ] || [ -L "$1" ] || exit ${NOT_THERE}; ${command}`;
/** Type, size, time and name of an entry, terminated by a zero: a name may contain any other byte. */
const SHOWN = "-printf '%y %s %T@ %f\\0'";
const SCRIPTS = {
  read: ifThere(`dd if="$1" bs=${PART_BYTES} skip="$2" count=1 iflag=fullblock status=none`),
  write: 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"',
  list: ifThere(
    `[ -d "$1" ] || { echo "$1 is no directory" >&2; exit 1; }; find "$1/" -mindepth 1 -maxdepth 1 ${SHOWN}`,
  ),
  stat: ifThere(`find -L "$1" -maxdepth 0 ${SHOWN}`),
  remove: ifThere('rm -- "$1"'),
  removeAll: ifThere('rm -rf -- "$1"'),
  mkdir: 'mkdir -p -- "$1"',
} as const;

export class UserFiles {
  readonly #client: Client;
  readonly #sandbox: SandboxName;
  readonly #user: Pick<CommandOptions, "user">;

  /** Without a user: the default user of commands. */
  constructor(client: Client, sandbox: SandboxName, user?: string) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#user = user === undefined || user === "" ? {} : { user };
  }

  /** The file as a stream of parts; null if it does not exist. */
  async open(path: string, options: FileOptions = {}): Promise<AsyncIterable<Uint8Array> | null> {
    const first = await this.#part(path, 0, options);
    return first === null ? null : this.#from(first, path, options);
  }

  /** The whole file; null if it does not exist. */
  async read(path: string, options: FileOptions = {}): Promise<Uint8Array | null> {
    return inTime(options, LATE, async (each) => {
      const parts = await this.open(path, each);
      if (parts === null) return null;
      const read: Uint8Array[] = [];
      for await (const part of parts) read.push(part);
      return Buffer.concat(read);
    });
  }

  async readText(path: string, options: FileOptions = {}): Promise<string | null> {
    const bytes = await this.read(path, options);
    return bytes === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /** Writes a file in place, and creates its parent directories. */
  async write(path: string, data: FileBody, options: FileOptions = {}): Promise<void> {
    const written = await inTime(options, LATE, async (each) => {
      const command = commandOf(SCRIPTS.write, path);
      const writing = await Execution.start(
        this.#client,
        this.#sandbox,
        command,
        { ...this.#user, ...withoutKey(each) },
        true,
      );
      return writing.feed(partsOf(data), each);
    });
    succeeded(written);
  }

  /** The direct entries of a directory; null if it does not exist. */
  async list(path: string, options: FileOptions = {}): Promise<UserFileEntry[] | null> {
    const listed = await this.#run(SCRIPTS.list, path, options);
    if (listed?.stdoutTruncated) throw new RoomdError(`${path} has more entries than can be listed.`);
    return listed?.stdout.split("\0").filter(Boolean).map(entryOf) ?? null;
  }

  /** Follows a symbolic link; null if the path does not exist. */
  async stat(path: string, options: FileOptions = {}): Promise<UserFileEntry | null> {
    const shown = await this.#run(SCRIPTS.stat, path, options);
    return shown && entryOf(shown.stdout.replace(/\0$/, ""));
  }

  async mkdir(path: string, options: FileOptions = {}): Promise<void> {
    await this.#run(SCRIPTS.mkdir, path, options);
  }

  /** False if it did not exist. A directory only if `recursive` is set. */
  async delete(path: string, { recursive, ...options }: FileOptions & { recursive?: boolean } = {}): Promise<boolean> {
    return (await this.#run(recursive ? SCRIPTS.removeAll : SCRIPTS.remove, path, options)) !== null;
  }

  async *#from(first: Uint8Array, path: string, options: FileOptions): AsyncGenerator<Uint8Array> {
    let part: Uint8Array | null = first;
    for (let index = 1; part !== null && part.byteLength > 0; index++) {
      yield part;
      if (part.byteLength < PART_BYTES) return;
      part = await this.#part(path, index, options);
    }
  }

  async #part(path: string, index: number, options: FileOptions): Promise<Uint8Array | null> {
    return (await this.#run(SCRIPTS.read, path, options, String(index)))?.stdoutBytes ?? null;
  }

  /** Null if the path does not exist. */
  async #run(script: string, path: string, options: FileOptions, ...more: string[]): Promise<CommandResult | null> {
    const command = commandOf(script, path, ...more);
    const done = await Execution.run(this.#client, this.#sandbox, command, { ...this.#user, ...withoutKey(options) });
    return done.exitCode === NOT_THERE ? null : succeeded(done);
  }
}

/** A name that starts with - is not an option. */
function commandOf(script: string, path: string, ...more: string[]): string[] {
  return ["sh", "-c", script, "sh", path.startsWith("-") ? `./${path}` : path, ...more];
}

/** One of several calls has no separate key; the time limit applies to the wait, not to a command. */
function withoutKey({ idempotencyKey: _, timeoutMs, waitMs = timeoutMs, ...options }: FileOptions): FileOptions {
  return { ...options, ...(waitMs === undefined ? {} : { waitMs }) };
}

function succeeded(done: CommandResult): CommandResult {
  if (done.exitCode === 0) return done;
  throw new RoomdError(done.stderr.trim() || `The command ended with ${done.exitCode ?? done.signal}.`);
}

async function* partsOf(data: FileBody): AsyncGenerator<Uint8Array | string> {
  if (typeof data === "string" || data instanceof Uint8Array) yield data;
  else yield* data instanceof Blob ? (data.stream() as unknown as AsyncIterable<Uint8Array>) : data;
}

function entryOf(line: string): UserFileEntry {
  const [kind = "", size, time, ...name] = line.split(" ");
  return {
    name: name.join(" "),
    kind: KINDS[kind] ?? "other",
    size: Number(size),
    modifiedAt: new Date(Number(time) * 1000),
  };
}
