/**
 * Files in a sandbox's own view: its disk, and what is mounted there. The guest's agent serves them, in any image. What several agents
 * share goes on the room's drive, which is /mnt/drive here too.
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

export interface FileWriteOptions extends CallOptions {
  /** Permissions in octal, such as "0644"; those of the file that is replaced if absent. */
  mode?: string;
  /** User of the sandbox, `user:group` or `uid:gid`; that of the file that is replaced if absent. */
  owner?: string;
  /** false: refuse when the file exists. */
  overwrite?: boolean;
  /** Only if the file has this ETag. */
  ifMatch?: string;
}

/** Files that are sent side by side. */
const AT_ONCE = 8;

export class Files {
  readonly #client: Client;
  readonly #sandbox: SandboxName;

  constructor(client: Client, sandbox: SandboxName) {
    this.#client = client;
    this.#sandbox = sandbox;
  }

  /** The same files with the rights of one user of the sandbox, by commands: slower, and the image needs a shell. */
  as(user?: string): UserFiles {
    return new UserFiles(this.#client, this.#sandbox, user);
  }

  /** The file, or a part of it, as it comes. Throws NotFoundError. */
  open(path: string, options: ReadOptions = {}): Promise<Download> {
    return this.#client.download("sandbox_file_get", this.#at(path), rangeOf(options));
  }

  /** Throws NotFoundError. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#client.bytes("sandbox_file_get", this.#at(path), rangeOf(options));
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Replaces the file as a whole, and makes the directories above it: no reader sees half of it. */
  async write(
    path: string,
    data: FileBody,
    { mode, owner, overwrite, ifMatch, ...options }: FileWriteOptions = {},
  ): Promise<WrittenSandboxFile> {
    const input = { ...this.#at(path), ...given({ mode, owner, overwrite }) };
    const headers = { ...options.headers, ...(ifMatch === undefined ? {} : { "If-Match": ifMatch }) };
    return await this.#client.upload("sandbox_file_put", input, data, { ...options, headers });
  }

  /** Several files, by their paths; some of them may be written when one fails. */
  async writeMany(files: Record<string, FileBody>, options: FileWriteOptions = {}): Promise<void> {
    const left = Object.entries(files);
    const worker = async () => {
      for (let next = left.pop(); next; next = left.pop()) await this.write(...next, options);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, worker));
  }

  /** Writes a file of this machine. */
  async upload(local: string, path: string, options: FileWriteOptions = {}): Promise<WrittenSandboxFile> {
    return this.write(path, await openAsBlob(local), options);
  }

  /** Writes what is in a directory of this machine into one of the sandbox, with modes. Links are left out. */
  uploadDir(local: string, path: string, options: Pick<FileWriteOptions, "owner" | "signal"> = {}): Promise<void> {
    return uploadDirectory(this, local, path, options);
  }

  /** The other way. A link is made as it is; what is neither file, directory nor link is left out. */
  downloadDir(path: string, local: string, options: Pick<CallOptions, "signal"> = {}): Promise<void> {
    return downloadDirectory(this, path, local, options);
  }

  /** What is in a directory, in the order of the names; `recursive`: what is below too, on the same file system. */
  list(
    path: string,
    { recursive, ...options }: CallOptions & { recursive?: boolean } = {},
  ): AsyncGenerator<SandboxFileEntry> {
    return this.#client.items("sandbox_file_list", { ...this.#at(path), ...given({ recursive }) }, options);
  }

  /** Throws NotFoundError. Of a link what it leads to, unless `follow` is false. */
  stat(
    path: string,
    { follow = true, ...options }: CallOptions & { follow?: boolean } = {},
  ): Promise<SandboxFileEntry> {
    return this.#client.call("sandbox_file_stat", { ...this.#at(path), follow }, options);
  }

  /** Whether there is an entry; a link that leads to nothing is one. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return (await orNull(this.stat(path, { ...options, follow: false }))) !== null;
  }

  /** Makes a directory and those above it; one that exists is fine. */
  async mkdir(
    path: string,
    { mode, owner, ...options }: CallOptions & Pick<FileWriteOptions, "mode" | "owner"> = {},
  ): Promise<void> {
    await this.#client.call("sandbox_file_mkdir", { ...this.#at(path), ...given({ mode, owner }) }, options);
  }

  async move(
    from: string,
    to: string,
    { overwrite, ...options }: CallOptions & { overwrite?: boolean } = {},
  ): Promise<void> {
    await this.#client.call("sandbox_file_move", { ...this.#sandbox, from, to, ...given({ overwrite }) }, options);
  }

  /** Throws NotFoundError. A directory that is not empty only if `recursive` is given. */
  async remove(path: string, { recursive, ...options }: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    await this.#client.call("sandbox_file_delete", { ...this.#at(path), ...given({ recursive }) }, options);
  }

  /** The same; false where there was none. */
  async delete(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<boolean> {
    return (await orNull(this.remove(path, options).then(() => true))) ?? false;
  }

  /** Changes of a file, or in a directory, as they happen, until the signal or the end of what is watched; `recursive`: below it too. */
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
    if (!path.startsWith("/")) throw new UsageError(`${path} is no absolute path, such as /root/${path}.`);
    return { ...this.#sandbox, path };
  }
}

/** All of a list. */
export async function gathered<T>(list: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of list) all.push(each);
  return all;
}

/** Null where there is no such file. */
export async function orNull<T>(found: Promise<T>): Promise<T | null> {
  return await found.catch((error: unknown) => {
    if (error instanceof NotFoundError && error.code === "path_not_found") return null;
    throw error;
  });
}

function given<T extends object>(fields: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
