/** The drive of a room: one directory that all its sandboxes mount at /mnt/drive. */
import { randomUUID } from "node:crypto";
import { openAsBlob } from "node:fs";
import { chmod, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { type ReadOptions, rangeOf } from "./byte-range.ts";
import type { Client, Download } from "./client.ts";
import type { DriveEntry, DriveStat, WrittenFile } from "./generated/schemas.ts";
import type { CallOptions, FileBody } from "./transport.ts";

/** Options of a write. */
export interface WriteOptions extends CallOptions {
  /** Permissions in octal; "0644" by default. */
  mode?: string;
  /** false: fail if the file exists. */
  overwrite?: boolean;
  /** Fail unless the file has this ETag. */
  ifMatch?: string;
}

/** The drive of a room. A missing file is a NotFoundError. */
export class Drive {
  readonly #client: Client;
  readonly #room: string;

  /** The drive of a room, by its name. */
  constructor(client: Client, room: string) {
    this.#client = client;
    this.#room = room;
  }

  /** Writes a file atomically, and creates its parent directories. */
  write(
    path: string,
    data: FileBody,
    { mode, overwrite, ifMatch, ...options }: WriteOptions = {},
  ): Promise<WrittenFile> {
    const input = {
      ...this.#at(path),
      ...(mode === undefined ? {} : { mode }),
      ...(overwrite === undefined ? {} : { overwrite }),
    };
    const headers = { ...options.headers, ...(ifMatch === undefined ? {} : { "If-Match": ifMatch }) };
    return this.#client.upload("file_put", input, data, { ...options, headers });
  }

  /** Copies a local file to the drive. */
  async upload(local: string, path: string, options: WriteOptions = {}): Promise<WrittenFile> {
    return this.write(path, await openAsBlob(local), options);
  }

  /** Appends to a file, which is created if it does not exist. */
  async append(path: string, data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    const content_b64 = Buffer.from(data).toString("base64");
    await this.#client.call("fs_write", { ...this.#at(path), content_b64, append: true }, options);
  }

  /** Streams a file, or a part of it. */
  open(path: string, options: ReadOptions = {}): Promise<Download> {
    return this.#client.download("file_get", this.#at(path), rangeOf(options));
  }

  /** Reads a file, or a part of it. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#client.bytes("file_get", this.#at(path), rangeOf(options));
  }

  /** Reads a file as UTF-8 text. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /**
   * Writes a file of the drive to a local path, atomically. If the path is a symbolic link, its target is replaced; a device or a pipe is
   * written to directly.
   */
  async download(path: string, local: string, options: ReadOptions = {}): Promise<void> {
    const there = await stat(local).catch(() => null);
    const write = async (to: string) => {
      const file = await this.open(path, options);
      // If nothing can be written, the stream is not read and has to be closed.
      await writeFile(to, file.stream, there ? { mode: there.mode } : {}).finally(file.close);
    };
    if (there && !there.isFile()) return await write(local);
    const target = there ? await realpath(local) : local;
    const part = `${target}.${randomUUID()}.part`;
    try {
      await write(part);
      if (there) await chmod(part, there.mode);
      await rename(part, target);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Describes a file or directory. */
  stat(path: string, options: CallOptions = {}): Promise<DriveStat> {
    return this.#client.call("fs_stat", this.#at(path), options);
  }

  /** Yields the entries of a directory; with `recursive` also those below it. */
  list(
    path?: string,
    { recursive, ...options }: CallOptions & { recursive?: boolean } = {},
  ): AsyncGenerator<DriveEntry> {
    const input = {
      room_id: this.#room,
      ...(path === undefined ? {} : { path }),
      ...(recursive === undefined ? {} : { recursive }),
    };
    return this.#client.items("fs_list", input, options);
  }

  /** Creates a directory and its parents. */
  async mkdir(path: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call("fs_mkdir", this.#at(path), options);
  }

  /** Moves or renames an entry; with `overwrite` it may replace a file. */
  async move(
    from: string,
    to: string,
    { overwrite, ...options }: CallOptions & { overwrite?: boolean } = {},
  ): Promise<void> {
    const input = { room_id: this.#room, from, to, ...(overwrite === undefined ? {} : { overwrite }) };
    await this.#client.call("fs_move", input, options);
  }

  /** Deletes a file, or with `recursive` a directory and its content. */
  async delete(path: string, { recursive, ...options }: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    await this.#client.call(
      "fs_delete",
      { ...this.#at(path), ...(recursive === undefined ? {} : { recursive }) },
      options,
    );
  }

  #at(path: string) {
    return { room_id: this.#room, path };
  }
}
