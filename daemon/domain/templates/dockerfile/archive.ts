/**
 * Build context as a tar, optionally gzipped, that was sent with a Dockerfile. It is held in memory, within limits; nothing of it is
 * written to a disk of this host.
 */
import { posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, type Header } from "tar-stream";
import { invalidRecipe } from "../recipe.ts";
import { type Beside, type Facts, IGNORE } from "./context.ts";

/** Unpacked. */
const MAX_BYTES = 128 * 1024 * 1024;
const MAX_ENTRIES = 20_000;
/** More than Linux accepts in one call. */
const MAX_PATH_CHARACTERS = 4096;
const GZIP = [0x1f, 0x8b];

interface Node extends Facts {
  content: Uint8Array;
  linkname: string;
}

const DIRECTORY: Node = {
  ...{ type: "directory", mode: 0o755, mtime: new Date(0) },
  ...{ content: new Uint8Array(), linkname: "" },
};

/** Throws validation_failed if it is not a tar, or too large. */
export async function archiveBeside(bytes: Uint8Array): Promise<Beside> {
  const all = new Map<string, Node>([["", DIRECTORY]]);
  const put = (path: string, node: Node) => {
    for (let parent = posix.dirname(path); parent !== "." && !all.has(parent); parent = posix.dirname(parent)) {
      all.set(parent, DIRECTORY);
    }
    all.set(path, node);
    if (all.size > MAX_ENTRIES) throw invalidRecipe([`context: the build context has more than ${MAX_ENTRIES} files`]);
  };
  await eachEntry(bytes, (header, content) => {
    // The parent of the root is the root, as for programs that unpack archives.
    const path = posix.resolve("/", header.name).slice(1);
    if (path === "") return;
    if (path.length > MAX_PATH_CHARACTERS)
      throw invalidRecipe([`context: a path in the build context has more than ${MAX_PATH_CHARACTERS} characters`]);
    const type = TYPES[header.type ?? "file"];
    const facts = { mode: (header.mode ?? 0o644) & 0o7777, mtime: header.mtime ?? new Date(0) };
    if (header.type === "link") {
      const original = all.get(posix.resolve("/", header.linkname ?? "").slice(1));
      if (original?.type !== "file")
        throw invalidRecipe([`context: ${path} in the build context is a link to a missing file`]);
      put(path, original);
    } else if (type !== undefined) put(path, { ...facts, type, content, linkname: header.linkname ?? "" });
  });
  const children = new Map<string, string[]>();
  for (const path of all.keys()) {
    if (path === "") continue;
    const parent = posix.dirname(path) === "." ? "" : posix.dirname(path);
    const names = children.get(parent);
    if (names) names.push(posix.basename(path));
    else children.set(parent, [posix.basename(path)]);
  }
  const ignore = all.get(IGNORE);
  return {
    ignored: ignore?.type === "file" ? new TextDecoder().decode(ignore.content) : "",
    facts: (path) => all.get(path) ?? null,
    names: (path) => (children.get(path) ?? []).sort(),
    linkOf: (path) => all.get(path)?.linkname ?? "",
    matches: (pattern) => {
      const glob = new Bun.Glob(pattern);
      return [...all.keys()].filter((path) => path !== "" && glob.match(path)).sort();
    },
    // Links in the archive are not followed.
    holds: () => true,
    reading: (work) =>
      work((path) => {
        const content = all.get(path)?.content ?? new Uint8Array();
        return { size: content.byteLength, pieces: () => once(content), close: async () => {} };
      }),
  };
}

/** Other types in a tar, such as devices, are left out. */
const TYPES: Partial<Record<NonNullable<Header["type"]>, Facts["type"]>> = {
  file: "file",
  "contiguous-file": "file",
  directory: "directory",
  symlink: "symlink",
};

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function eachEntry(bytes: Uint8Array, take: (header: Header, content: Uint8Array) => void): Promise<void> {
  const tar = extract();
  const isPacked = GZIP.every((byte, at) => bytes[at] === byte);
  const source = Readable.from(once(bytes));
  let unpacked = 0;
  const read = (async () => {
    for await (const entry of tar) {
      const pieces: Uint8Array[] = [];
      for await (const piece of entry as AsyncIterable<Uint8Array>) {
        unpacked += piece.byteLength;
        if (unpacked > MAX_BYTES)
          throw invalidRecipe([`context: the build context has more than ${MAX_BYTES / 1024 ** 2} MiB`]);
        pieces.push(piece);
      }
      take(entry.header, Buffer.concat(pieces));
    }
  })();
  const fed = isPacked ? pipeline(source, createGunzip(), tar) : pipeline(source, tar);
  try {
    await Promise.all([read, fed]);
  } catch (error) {
    tar.destroy();
    await fed.catch(() => {});
    if (error instanceof Error && "code" in error && error.code === "validation_failed") throw error;
    throw invalidRecipe(["context: the build context is not a tar archive"]);
  }
}
