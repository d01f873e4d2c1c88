/** Files of a sandbox by E2B's interface. Relative paths are below /home/user. */
import { posix } from "node:path";
import type { Files } from "../files.ts";
import type { FileChanged, SandboxFileEntry } from "../generated/schemas.ts";
import type { FileBody } from "../transport.ts";
import { HOME } from "./commands.ts";
import { FileNotFoundError, translating } from "./errors.ts";
import { callOf, type RequestOpts } from "./request.ts";

/** Kinds of entries. */
export const FileType = { FILE: "file", DIR: "dir", SYMLINK: "symlink" } as const;
export type FileType = (typeof FileType)[keyof typeof FileType];

/** A file that was written. */
export interface WriteInfo {
  /** Its name. */
  name: string;
  /** Type of the entry; absent for devices, pipes and sockets. */
  type?: FileType;
  /** Its absolute path. */
  path: string;
}

/** An entry of a directory. `owner` and `group` are numeric. */
export interface EntryInfo extends WriteInfo {
  /** Size in bytes. */
  size: number;
  /** Permission bits. */
  mode: number;
  /** Permissions as `ls -l` prints them, such as "-rw-r--r--". */
  permissions: string;
  /** Numeric user id. */
  owner: string;
  /** Numeric group id. */
  group: string;
  /** Time of the last change. */
  modifiedTime?: Date;
  /** Target of a symbolic link. */
  symlinkTarget?: string;
}

type Content = string | ArrayBuffer | Uint8Array | Blob | ReadableStream<Uint8Array>;

/** A file to write. */
export interface WriteEntry {
  path: string;
  data: Content;
}

/** A change below a watched directory. `name` is relative to that directory. */
export interface FilesystemEvent {
  /** Path relative to the directory. */
  name: string;
  /** Kind of the change. */
  type: "create" | "write" | "remove" | "rename";
}

/** A watch that is active. */
export interface WatchHandle {
  /** Ends the watch. */
  stop(): Promise<void>;
}

/** Options of a call about files. */
export interface FilesystemRequestOpts extends RequestOpts {
  /** Has no effect: files belong to the default user of commands. */
  user?: string;
}

const EVENT_TYPES: Partial<Record<FileChanged["type"], FilesystemEvent["type"]>> = {
  created: "create",
  modified: "write",
  deleted: "remove",
  moved: "rename",
};

/** Reads, writes, lists and watches files. */
export class Filesystem {
  readonly #files: Files;

  /** The files of a sandbox. */
  constructor(files: Files) {
    this.#files = files;
  }

  /** The content of a file, as text by default. */
  read(path: string, opts?: FilesystemRequestOpts & { format?: "text" }): Promise<string>;
  read(path: string, opts: FilesystemRequestOpts & { format: "bytes" }): Promise<Uint8Array>;
  read(path: string, opts: FilesystemRequestOpts & { format: "blob" }): Promise<Blob>;
  read(path: string, opts: FilesystemRequestOpts & { format: "stream" }): Promise<ReadableStream<Uint8Array>>;
  read(
    path: string,
    { format = "text", ...opts }: FilesystemRequestOpts & { format?: "text" | "bytes" | "blob" | "stream" } = {},
  ) {
    return translating(async () => {
      const at = absolute(path);
      if (format === "text") return this.#files.readText(at, callOf(opts));
      if (format === "stream") return streamOf((await this.#files.open(at, callOf(opts))).stream);
      const bytes = await this.#files.read(at, callOf(opts));
      return format === "bytes" ? bytes : new Blob([new Uint8Array(bytes)]);
    });
  }

  /** Writes one or several files, and creates their parent directories. */
  write(path: string, data: Content, opts?: FilesystemRequestOpts): Promise<WriteInfo>;
  write(files: WriteEntry[], opts?: FilesystemRequestOpts): Promise<WriteInfo[]>;
  write(
    path: string | WriteEntry[],
    data: Content | FilesystemRequestOpts = "",
    opts: FilesystemRequestOpts = {},
  ): Promise<WriteInfo | WriteInfo[]> {
    if (typeof path === "string") return this.#write(path, data as Content, opts);
    return this.writeFiles(path, data === "" ? {} : (data as FilesystemRequestOpts));
  }

  /** Writes several files. */
  writeFiles(files: WriteEntry[], opts: FilesystemRequestOpts = {}): Promise<WriteInfo[]> {
    return Promise.all(files.map(({ path, data }) => this.#write(path, data, opts)));
  }

  /** Entries of a directory, down to `depth` levels, 1 by default. */
  list(path: string, { depth = 1, ...opts }: FilesystemRequestOpts & { depth?: number } = {}): Promise<EntryInfo[]> {
    return translating(async () => {
      const at = absolute(path);
      const found: EntryInfo[] = [];
      for await (const entry of this.#files.list(at, { recursive: depth > 1, ...callOf(opts) })) {
        if (posix.relative(at, entry.path).split("/").length <= depth) found.push(infoOf(entry));
      }
      return found;
    });
  }

  /** Creates a directory and its parents. False if it exists. */
  makeDir(path: string, opts: FilesystemRequestOpts = {}): Promise<boolean> {
    return translating(async () => {
      if (await this.#files.exists(absolute(path), callOf(opts))) return false;
      await this.#files.mkdir(absolute(path), callOf(opts));
      return true;
    });
  }

  /** Moves an entry. */
  rename(oldPath: string, newPath: string, opts: FilesystemRequestOpts = {}): Promise<EntryInfo> {
    return translating(async () => {
      await this.#files.move(absolute(oldPath), absolute(newPath), { overwrite: true, ...callOf(opts) });
      return infoOf(await this.#files.stat(absolute(newPath), { follow: false, ...callOf(opts) }));
    });
  }

  /** Removes a file, or a directory and its content. */
  remove(path: string, opts: FilesystemRequestOpts = {}): Promise<void> {
    return translating(() => this.#files.remove(absolute(path), { recursive: true, ...callOf(opts) }));
  }

  /** Whether there is an entry. */
  exists(path: string, opts: FilesystemRequestOpts = {}): Promise<boolean> {
    return translating(() => this.#files.exists(absolute(path), callOf(opts)));
  }

  /** Describes an entry. Throws FileNotFoundError. */
  getInfo(path: string, opts: FilesystemRequestOpts = {}): Promise<EntryInfo> {
    return translating(async () => infoOf(await this.#files.stat(absolute(path), { follow: false, ...callOf(opts) })));
  }

  /** Calls `onEvent` for each change in a directory, until the returned handle is stopped. */
  async watchDir(
    path: string,
    onEvent: (event: FilesystemEvent) => void | Promise<void>,
    {
      recursive = false,
      onExit,
    }: FilesystemRequestOpts & { recursive?: boolean; onExit?: (error?: Error) => void | Promise<void> } = {},
  ): Promise<WatchHandle> {
    const at = absolute(path);
    if (!(await this.exists(at))) throw new FileNotFoundError(`${at} does not exist.`);
    const stop = new AbortController();
    const watching = this.#watch(at, recursive, stop.signal, onEvent);
    const ended = watching.then(
      () => onExit?.(),
      (error: unknown) => (stop.signal.aborted ? onExit?.() : onExit?.(error as Error)),
    );
    return {
      async stop() {
        stop.abort();
        await ended;
      },
    };
  }

  async #watch(
    at: string,
    recursive: boolean,
    signal: AbortSignal,
    onEvent: (event: FilesystemEvent) => void | Promise<void>,
  ): Promise<void> {
    for await (const change of this.#files.watch(at, { recursive, signal })) {
      const type = EVENT_TYPES[change.type];
      if (type !== undefined) await onEvent({ name: posix.relative(at, change.path), type });
    }
  }

  #write(path: string, data: Content, opts: FilesystemRequestOpts): Promise<WriteInfo> {
    return translating(async () => {
      const at = absolute(path);
      await this.#files.write(
        at,
        data instanceof ArrayBuffer ? new Uint8Array(data) : (data as FileBody),
        callOf(opts),
      );
      return { name: posix.basename(at), type: FileType.FILE, path: at };
    });
  }
}

/** `ReadableStream.from` is not in the types of every runtime. */
function streamOf(parts: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

const absolute = (path: string) => posix.resolve(HOME, path);

function infoOf({ path, name, type, size_bytes, mode, uid, gid, modified_at, target }: SandboxFileEntry): EntryInfo {
  const bits = Number.parseInt(mode, 8);
  return {
    name,
    path,
    ...(type === "directory" ? { type: FileType.DIR } : type === "other" ? {} : { type }),
    size: size_bytes,
    mode: bits,
    permissions: permissionsOf(type, bits),
    owner: String(uid),
    group: String(gid),
    modifiedTime: new Date(modified_at),
    ...(target === undefined ? {} : { symlinkTarget: target }),
  };
}

/** Permissions as `ls -l` prints them, such as "-rw-r--r--". */
function permissionsOf(type: SandboxFileEntry["type"], bits: number): string {
  const first = { file: "-", directory: "d", symlink: "l", other: "?" }[type];
  const three = (at: number) =>
    ["r", "w", "x"].map((letter, bit) => (bits & (1 << (at - bit)) ? letter : "-")).join("");
  return `${first}${three(8)}${three(5)}${three(2)}`;
}
