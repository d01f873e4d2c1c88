/** Room backup files that tests forge: parsed, changed, and reassembled into valid files. */
import { createHash } from "node:crypto";
import type { Json } from "./json.ts";

/** A line of the file, and the bytes that it announces. */
export interface Part {
  said: Json;
  bytes: Buffer;
}

/** All but the last line. */
export function partsOf(file: Buffer): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < file.length; ) {
    const end = file.indexOf(10, at);
    const said: Json = JSON.parse(file.toString("utf8", at, end));
    const from = end + 1;
    at = from + ("at" in said ? said.bytes : 0);
    parts.push({ said, bytes: file.subarray(from, at) });
  }
  return parts.slice(0, -1);
}

export function fileOf(parts: readonly Part[]): Buffer {
  const body = Buffer.concat(parts.flatMap(({ said, bytes }) => [Buffer.from(`${JSON.stringify(said)}\n`), bytes]));
  const files = parts.filter(({ said }) => "file" in said).length;
  const sha256 = createHash("sha256").update(body).digest("hex");
  return Buffer.concat([body, Buffer.from(`${JSON.stringify({ end: { files, sha256 } })}\n`)]);
}

/** The file with another content of one in it. */
export function withFile(file: Buffer, name: string | number, change: (text: string) => string): Buffer {
  const parts = partsOf(file);
  const at = parts.findIndex(({ said }) => said.file === name);
  const next = parts.findIndex(({ said }, place) => place > at && "file" in said);
  const end = next === -1 ? parts.length : next;
  const held = Buffer.concat(parts.slice(at + 1, end).map(({ bytes }) => bytes));
  const changed = Buffer.from(change(held.toString("utf8")));
  const made: Part[] = [{ said: { file: name, size: changed.length }, bytes: Buffer.alloc(0) }];
  for (let from = 0; from < changed.length; from += 1024 * 1024) {
    const bytes = changed.subarray(from, from + 1024 * 1024);
    made.push({ said: { at: from, bytes: bytes.length }, bytes });
  }
  return fileOf([...parts.slice(0, at), ...made, ...parts.slice(end)]);
}

/** The file with another first line. */
export function withFirst(file: Buffer, change: (header: Json) => Json): Buffer {
  const [first, ...rest] = partsOf(file);
  return fileOf([{ said: change(first?.said ?? {}), bytes: Buffer.alloc(0) }, ...rest]);
}
