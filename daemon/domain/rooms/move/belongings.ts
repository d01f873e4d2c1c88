/**
 * Owns what a room has besides its drive and its rows, as files: snapshots, checkpoints, recordings, and the sandboxes that were saved for
 * its move. Each has a place in the room's file, and one that has several names goes once. What guests have of their templates goes only
 * where the other host does not have it.
 */
import { readdir, stat } from "node:fs/promises";
import type { RoomUid, SandboxId } from "../../../../shared/ids.ts";
import { BASE, type Paths } from "../../../core/paths.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { filesOfSaved } from "../../../host/guest/moved.ts";
import { digestFile } from "../../../host/images/digest.ts";
import { templateFiles } from "../../templates/files.ts";

export interface Belonging {
  place: string;
  path: string;
  /** On this disk; 0 of one that is there under another name. */
  bytes: number;
  /** Its place under a name that went before. */
  to: string | null;
  /** Of a template's file that the other host has. */
  digest: string | null;
}

type Place = Pick<Paths, "snapshots" | "checkpoints" | "recordings" | "sandbox"> & Parameters<typeof templateFiles>[0];

/** By device and inode. */
type Digests = ReadonlyMap<string, string>;

export class Belongings {
  readonly #paths: Place;
  readonly #roomUid: RoomUid;
  /** Of what its guests have of their templates. */
  #digests: Digests = new Map();
  #atOther: ReadonlySet<string> = new Set();

  constructor(paths: Place, roomUid: RoomUid) {
    this.#paths = paths;
    this.#roomUid = roomUid;
  }

  /** Looks at the files of templates while the room goes on; returns their digests. `sandboxes` may go along. Of what is a template's still it is known. */
  async look(sandboxes: readonly SandboxId[]): Promise<string[]> {
    const snapshots = this.#paths.snapshots(this.#roomUid);
    const homes = (await namesIn(snapshots)).map((name) => `${snapshots}/${name}/${BASE}`);
    const known = new Map<string, string>();
    for (const [digest, path] of await templateFiles(this.#paths)) known.set((await fileAt(path)).key, digest);
    const found = new Map<string, string>();
    for (const base of [...homes, ...sandboxes.map((id) => this.#paths.sandbox(id).base)]) {
      for (const name of await namesIn(base)) {
        const { key } = await fileAt(`${base}/${name}`);
        if (!found.has(key)) found.set(key, known.get(key) ?? (await digestFile(`${base}/${name}`)));
      }
    }
    this.#digests = found;
    return [...new Set(found.values())];
  }

  /** The other host has all of these but those. */
  without(missing: readonly string[]): void {
    this.#atOther = new Set([...this.#digests.values()].filter((digest) => !missing.includes(digest)));
  }

  /** What it comes to, in bytes that are to be kept there. */
  async measure(sandboxes: readonly SandboxId[]): Promise<number> {
    let sum = 0;
    for await (const { bytes } of this.all(sandboxes)) sum += bytes;
    return sum;
  }

  /** Nothing of it changes meanwhile. */
  async *all(sandboxes: readonly SandboxId[]): AsyncGenerator<Belonging> {
    const placed = new Map<string, string>();
    for await (const [place, path] of this.#files(sandboxes)) {
      const { key, bytes, isShared } = await fileAt(path);
      const told = this.#digests.get(key);
      const digest = told !== undefined && this.#atOther.has(told) ? told : null;
      const to = isShared ? (placed.get(key) ?? null) : null;
      if (isShared && to === null) placed.set(key, place);
      yield { place, path, to, digest, bytes: to === null && digest === null ? bytes : 0 };
    }
  }

  async *#files(sandboxes: readonly SandboxId[]): AsyncGenerator<[string, string]> {
    const { snapshots, checkpoints, recordings, sandbox } = this.#paths;
    yield* filesIn("snapshots", snapshots(this.#roomUid));
    yield* filesIn("checkpoints", checkpoints(this.#roomUid));
    yield* filesIn("recordings", recordings(this.#roomUid));
    for (const id of sandboxes) {
      const paths = sandbox(id);
      for (const name of await filesOfSaved(paths)) yield [`sandboxes/${id}/${name}`, `${paths.directory}/${name}`];
    }
  }
}

async function* filesIn(place: string, directory: string): AsyncGenerator<[string, string]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const [inside, path] = [`${place}/${entry.name}`, `${directory}/${entry.name}`];
    // What a template's file leads to where it lies on another disk is that file.
    if (entry.isDirectory()) yield* filesIn(inside, path);
    else if (!entry.name.endsWith(".new")) yield [inside, path];
  }
}

async function fileAt(path: string): Promise<{ key: string; bytes: number; isShared: boolean }> {
  const { dev, ino, blocks, nlink } = await stat(path);
  return { key: `${dev}:${ino}`, bytes: blocks * 512, isShared: nlink > 1 };
}
