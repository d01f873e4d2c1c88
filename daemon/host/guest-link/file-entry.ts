/** Validation of a guest's answers about files: the shape, and bounds for every part. */

import {
  type FileAnswer,
  type FileChange,
  type FileEntry,
  MAX_FILE_LINE_BYTES,
  MAX_FILE_PATH_BYTES,
} from "../../../shared/agent-protocol/files.ts";
import { parseJson } from "../../core/json.ts";

const TYPES: readonly string[] = ["file", "directory", "symlink", "other"] satisfies FileEntry["type"][];
const CHANGES: readonly string[] = [
  "created",
  "modified",
  "deleted",
  "moved",
  "overflow",
] satisfies FileChange["type"][];
const MAX_VERSION_CHARACTERS = 256;
const MAX_BASE64 = Math.ceil(MAX_FILE_PATH_BYTES / 3) * 4;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** Maxima of the permission bits and of the user ID. */
const MOST = { mode: 0o7777, id: 2 ** 32 - 1 } as const;
const LATEST_MS = 253_402_300_799_000;
const LINE_END = 0x0a;

type Unsure = Partial<Record<string, unknown>>;

/** Parses an entry. Throws if it is malformed. */
export function readEntry(value: unknown): FileEntry {
  const { path, path_b64, type, size_bytes, mode, uid, gid, modified_at_ms, target, identity, version } = Object(
    value,
  ) as Unsure;
  if (typeof type !== "string" || !TYPES.includes(type)) throw new Error("the guest sent an invalid file entry");
  const millis = Number(modified_at_ms);
  return {
    path: pathText(path),
    ...bytesOf(path_b64),
    type: type as FileEntry["type"],
    size_bytes: count(size_bytes, Number.MAX_SAFE_INTEGER),
    mode: count(mode, MOST.mode),
    uid: count(uid, MOST.id),
    gid: count(gid, MOST.id),
    modified_at_ms: Number.isFinite(millis) ? Math.min(Math.max(0, millis), LATEST_MS) : 0,
    ...(target === undefined ? {} : { target: pathText(target) }),
    identity: short(identity),
    version: short(version),
  };
}

export function readAnswer(value: unknown): Required<FileAnswer> {
  const { entry, created } = Object(value) as Unsure;
  return { entry: readEntry(entry), created: created === true };
}

export function readChange(value: unknown): FileChange {
  const { seq, type, path, path_b64, from, is_directory } = Object(value) as Unsure;
  if (typeof type !== "string" || !CHANGES.includes(type) || !Number.isSafeInteger(seq)) {
    throw new Error("the guest sent an invalid file change");
  }
  return {
    seq: seq as number,
    type: type as FileChange["type"],
    path: pathText(path),
    ...bytesOf(path_b64),
    ...(typeof from === "string" ? { from: pathText(from) } : {}),
    is_directory: is_directory === true,
  };
}

/** Parses a byte stream as lines of JSON and yields the complete lines of each chunk. Throws if a line is too long. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown[]> {
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_END) + 1;
    // Concatenated once per line, however small its pieces are.
    const whole = end === 0 ? null : Buffer.concat([...rest, chunk.subarray(0, end)]);
    if (whole) [rest, restBytes] = [[], 0];
    if (end < chunk.byteLength) rest.push(Buffer.from(chunk.subarray(end)));
    restBytes += chunk.byteLength - end;
    if (restBytes > MAX_FILE_LINE_BYTES) throw new Error("a line of the guest is too long");
    if (whole)
      yield whole
        .toString("utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => parseJson(line));
  }
}

function bytesOf(path_b64: unknown): { path_b64?: string } {
  const isBase64 = typeof path_b64 === "string" && path_b64.length <= MAX_BASE64 && BASE64.test(path_b64);
  return isBase64 ? { path_b64 } : {};
}

function pathText(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_FILE_PATH_BYTES).toWellFormed() : "";
}

function short(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_VERSION_CHARACTERS) : "";
}

function count(value: unknown, most: number): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most ? (value as number) : 0;
}
