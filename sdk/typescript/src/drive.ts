/** Owns a room's drive: one directory of files that all its sandboxes see as /mnt/drive. */
import { randomUUID } from "node:crypto";
import { openAsBlob } from "node:fs";
import { chmod, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { type ReadOptions, rangeOf } from "./byte-range.ts";
import type { Client, Download } from "./client.ts";
import type { DriveEntry, DriveStat, WrittenFile } from "./generated/schemas.ts";
import type { CallOptions, FileBody } from "./transport.ts";

export interface WriteOptions extends CallOptions {
  /** Permissions in octal, such as "0644". */
  mode?: string;
  /** false: refuse when the file exists. */
  overwrite?: boolean;
  /** Only if the file has this ETag. */
  ifMatch?: string;
}

export class Drive {
  readonly #client: Client;
  readonly #room: string;

  constructor(client: Client, room: string) {
    this.#client = client;
    this.#room = room;
  }

  /** Replaces the file as a whole, and makes the directories above it: no reader sees half of it. */
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

  /** Writes a file of this machine. */
  async upload(local: string, path: string, options: WriteOptions = {}): Promise<WrittenFile> {
    return this.write(path, await openAsBlob(local), options);
  }

  async append(path: string, data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    const content_b64 = Buffer.from(data).toString("base64");
    await this.#client.call("fs_write", { ...this.#at(path), content_b64, append: true }, options);
  }

  /** The file, or a part of it, as it comes. */
  open(path: string, options: ReadOptions = {}): Promise<Download> {
    return this.#client.download("file_get", this.#at(path), rangeOf(options));
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.#client.bytes("file_get", this.#at(path), rangeOf(options));
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /**
   * Writes a file of the drive onto this machine: whole, or not at all. A link stays, and what is no regular file, such as a device or a
   * pipe, is written to as it comes.
   */
  async download(path: string, local: string, options: ReadOptions = {}): Promise<void> {
    const there = await stat(local).catch(() => null);
    const write = async (to: string) => {
      const file = await this.open(path, options);
      // Where nothing can be written, nobody has read it.
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

  stat(path: string, options: CallOptions = {}): Promise<DriveStat> {
    return this.#client.call("fs_stat", this.#at(path), options);
  }

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

  async mkdir(path: string, options: CallOptions = {}): Promise<void> {
    await this.#client.call("fs_mkdir", this.#at(path), options);
  }

  async move(
    from: string,
    to: string,
    { overwrite, ...options }: CallOptions & { overwrite?: boolean } = {},
  ): Promise<void> {
    const input = { room_id: this.#room, from, to, ...(overwrite === undefined ? {} : { overwrite }) };
    await this.#client.call("fs_move", input, options);
  }

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
