/**
 * The method `file_list`: one page of a directory. Names are ordered by their bytes, a directory before its entries, so that the last path
 * of a page marks the start of the next one.
 */
import { readdir, stat } from "node:fs/promises";
import { type FileEntry, type FileListEnd, MAX_FILE_PATH_BYTES } from "../../shared/agent-protocol/files.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel } from "../../shared/agent-protocol/messages.ts";
import { InvalidRequest, wholeNumber } from "../exec/request.ts";
import { entryIfThere } from "./entry.ts";
import { errnoOf, FileError, isMissing } from "./file-error.ts";
import { joined, parsePath } from "./path.ts";

/** Entries that are read concurrently. */
const BATCH = 64;
const LINES_BYTES = 32 * 1024;

interface ListOptions {
  recursive: boolean;
  /** Identity of the file system that a recursive list stays on. */
  device: string;
}

export async function listDirectory(stream: Stream, request: object): Promise<void> {
  const { path: requestedPath, recursive, after_b64, limit } = request as Record<string, unknown>;
  const path = parsePath(requestedPath);
  const most = wholeNumber("limit", limit);
  if (after_b64 !== null && typeof after_b64 !== "string") throw new InvalidRequest("after_b64 must be text or null");
  const facts = await stat(path, { bigint: true });
  if (!facts.isDirectory()) throw new FileError("ENOTDIR");
  const after = after_b64 === null ? null : Buffer.from(after_b64, "base64").toString("latin1").split("/");
  const options = { recursive: recursive === true, device: String(facts.dev) };
  let count = 0;
  let more = false;
  let lines: string[] = [];
  let bytes = 0;
  const send = async () => {
    const all = Buffer.from(lines.join(""));
    lines = [];
    bytes = 0;
    return all.byteLength === 0 || (await stream.write(Channel.output, all));
  };
  for await (const entry of below(path, after, options)) {
    if (stream.ended) return;
    more = count === most;
    if (more) break;
    count++;
    const line = `${JSON.stringify(entry)}\n`;
    lines.push(line);
    bytes += line.length;
    if (bytes >= LINES_BYTES && !(await send())) return;
  }
  await send();
  stream.endChannel(Channel.output);
  const end: FileListEnd = { more };
  stream.finish(end);
}

/** Entries below a directory after this path. A missing or unreadable directory has none. */
async function* below(directory: Buffer, after: string[] | null, options: ListOptions): AsyncGenerator<FileEntry> {
  const names = await namesIn(directory, after?.[0] ?? "");
  for (let at = 0; at < names.length; at += BATCH) {
    const batch = names.slice(at, at + BATCH).map((name) => ({ name, path: joined(directory, name) }));
    const entries = await Promise.all(batch.map(({ path }) => entryIfThere(path)));
    for (const [index, { name, path }] of batch.entries()) {
      const entry = entries[index];
      if (!entry) continue;
      const isKnown = name === after?.[0];
      if (!isKnown) yield entry;
      const inside = entry.type === "directory" && options.recursive && entry.identity.startsWith(`${options.device}:`);
      if (!inside) continue;
      const rest = isKnown && after && after.length > 1 ? after.slice(1) : null;
      yield* below(path, rest, options);
    }
  }
}

/** Names from this one on, as latin1 text. Paths that are too long for a request are left out. */
async function namesIn(directory: Buffer, from: string): Promise<string[]> {
  try {
    const all = await readdir(directory, { encoding: "buffer" });
    return all
      .map((name) => name.toString("latin1"))
      .filter((name) => name >= from && directory.byteLength + 1 + name.length < MAX_FILE_PATH_BYTES)
      .sort();
  } catch (error) {
    if (isMissing(error) || errnoOf(error) === "EACCES") return [];
    throw error;
  }
}
