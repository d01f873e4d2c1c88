/**
 * Files as a sandbox sees them: its disk and its mounts, served by the guest agent in any image. Files for several agents belong on the
 * room's drive, which is mounted at /mnt/drive.
 */
import { openAsBlob } from "node:fs";
import { type ReadOptions, rangeOf } from "./byte-range.ts";
import type { Client, Download } from "./client.ts";
import { NotFoundError, UsageError } from "./errors.ts";
import type { SandboxName } from "./execution.ts";
import type { FileChanged, SandboxFileEntry, WrittenSandboxFile } from "./generated/schemas.ts";
import { downloadDirectory, uploadDirectory } from "./local-tree.ts";
import type { CallOptions, FileBody } from "./transport.ts";
import { UserFiles } from "./user-files.ts";

/** Options of a write. */
export interface FileWriteOptions extends CallOptions {
  /** Permissions in octal, such as "0644"; by default the replaced file's. */
  mode?: string;
  /** User of the sandbox, `user:group` or `uid:gid`; by default the replaced file's owner. */
  owner?: string;
  /** false: fail if the file exists. */
  overwrite?: boolean;
  /** Fail unless the file has this ETag. */
  ifMatch?: string;
}

/** Number of files sent in parallel. */
const AT_ONCE = 8;

/** Files of a sandbox. Paths are absolute. */
export class Files {
  readonly #client: Client;
  readonly #sandbox: SandboxName;

  /** Files of a sandbox, named by its room and agent. */
  constructor(client: Client, sandbox: SandboxName) {
    this.#client = client;
    this.#sandbox = sandbox;
  }

  /** The same files with the permissions of a user of the sandbox. Uses commands: slower, and the image needs a shell. */
  as(user?: string): UserFiles {
    return new UserFiles(this.#client, this.#sandbox, user);
  }

  /** Streams a file, or a part of it. Throws NotFoundError. */
  open(path: string, options: ReadOptions = {}): Promise<Download> {
    return this.#client.download("sandbox_file_get", this.#at(path), rangeOf(options));
  }

  /** Reads a file, or a part of it. Throws NotFoundError. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#client.bytes("sandbox_file_get", this.#at(path), rangeOf(options));
  }

  /** Reads a file as UTF-8 text. Throws NotFoundError. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Writes a file atomically, and creates its parent directories. */
  async write(
    path: string,
    data: FileBody,
    { mode, owner, overwrite, ifMatch, ...options }: FileWriteOptions = {},
  ): Promise<WrittenSandboxFile> {
    const input = { ...this.#at(path), ...given({ mode, owner, overwrite }) };
    const headers = { ...options.headers, ...(ifMatch === undefined ? {} : { "If-Match": ifMatch }) };
    return await this.#client.upload("sandbox_file_put", input, data, { ...options, headers });
  }

  /** Writes several files, by path, in parallel; if one fails, others may have been written. */
  async writeMany(files: Record<string, FileBody>, options: FileWriteOptions = {}): Promise<void> {
    const left = Object.entries(files);
    const worker = async () => {
      for (let next = left.pop(); next; next = left.pop()) await this.write(...next, options);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, worker));
  }

  /** Copies a local file to the sandbox. */
  async upload(local: string, path: string, options: FileWriteOptions = {}): Promise<WrittenSandboxFile> {
    return this.write(path, await openAsBlob(local), options);
  }

  /** Copies the content of a local directory to a directory of the sandbox, with permissions. Symbolic links are left out. */
  uploadDir(local: string, path: string, options: Pick<FileWriteOptions, "owner" | "signal"> = {}): Promise<void> {
    return uploadDirectory(this, local, path, options);
  }

  /** Copies the content of a directory to a local directory, with permissions and symbolic links, without devices, pipes and sockets. */
  downloadDir(path: string, local: string, options: Pick<CallOptions, "signal"> = {}): Promise<void> {
    return downloadDirectory(this, path, local, options);
  }

  /** Yields the entries of a directory, sorted by name; with `recursive` also those below it on the same file system. */
  list(
    path: string,
    { recursive, ...options }: CallOptions & { recursive?: boolean } = {},
  ): AsyncGenerator<SandboxFileEntry> {
    return this.#client.items("sandbox_file_list", { ...this.#at(path), ...given({ recursive }) }, options);
  }

  /** Describes an entry; with `follow: false` a symbolic link itself, not its target. Throws NotFoundError. */
  stat(
    path: string,
    { follow = true, ...options }: CallOptions & { follow?: boolean } = {},
  ): Promise<SandboxFileEntry> {
    return this.#client.call("sandbox_file_stat", { ...this.#at(path), follow }, options);
  }

  /** Whether an entry exists; a dangling symbolic link counts. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return (await orNull(this.stat(path, { ...options, follow: false }))) !== null;
  }

  /** Creates a directory and its parents; an existing directory is not an error. */
  async mkdir(
    path: string,
    { mode, owner, ...options }: CallOptions & Pick<FileWriteOptions, "mode" | "owner"> = {},
  ): Promise<void> {
    await this.#client.call("sandbox_file_mkdir", { ...this.#at(path), ...given({ mode, owner }) }, options);
  }

  /** Moves or renames an entry; with `overwrite` it may replace a file. */
  async move(
    from: string,
    to: string,
    { overwrite, ...options }: CallOptions & { overwrite?: boolean } = {},
  ): Promise<void> {
    await this.#client.call("sandbox_file_move", { ...this.#sandbox, from, to, ...given({ overwrite }) }, options);
  }

  /** Removes a file or an empty directory; with `recursive` a directory and its content. Throws NotFoundError. */
  async remove(path: string, { recursive, ...options }: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    await this.#client.call("sandbox_file_delete", { ...this.#at(path), ...given({ recursive }) }, options);
  }

  /** As `remove`; returns false if the entry does not exist. */
  async delete(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<boolean> {
    return (await orNull(this.remove(path, options).then(() => true))) ?? false;
  }

  /** Yields changes of a file or directory, with `recursive` also below it, until the signal aborts or the watched entry is removed. */
  async *watch(
    path: string,
    { recursive, ...options }: Pick<CallOptions, "signal"> & { recursive?: boolean } = {},
  ): AsyncGenerator<FileChanged> {
    for await (const event of this.#client.events(
      "sandbox_file_watch",
      { ...this.#at(path), ...given({ recursive }) },
      options,
    )) {
      if (event.type !== "watching") yield event as FileChanged;
    }
  }

  #at(path: string) {
    if (!path.startsWith("/")) throw new UsageError(`${path} is not an absolute path, such as /root/${path}.`);
    return { ...this.#sandbox, path };
  }
}

/** All of a list. */
export async function gathered<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of list) all.push(each);
  return all;
}

/** Null if the file does not exist. */
export async function orNull<T>(found: Promise<T>): Promise<T | null> {
  return await found.catch((error: unknown) => {
    if (error instanceof NotFoundError && error.code === "path_not_found") return null;
    throw error;
  });
}

function given<T extends object>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
