/**
 * Files of a room besides its drive and its rows: snapshots, checkpoints, recordings, and the sandboxes that were saved for its move. Each
 * has a path in the room's file, and a file with several names is sent once. Template files of guests are sent only if the other host lacks
 * them.
 */
import { readdir, stat } from "node:fs/promises";
import type { RoomUid, SandboxId } from "../../../../shared/ids.ts";
import { BASE, type Paths } from "../../../core/config/paths.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { filesOfSaved } from "../../../host/guest/transfer.ts";
import { digestFile } from "../../../host/images/digest.ts";
import { templateFiles } from "../../templates/files.ts";

export interface Artifact {
  place: string;
  path: string;
  /** Bytes on this disk; 0 for a file that is there under another name. */
  bytes: number;
  /** For a hard link: its target, which was sent before. */
  to: string | null;
  /** For a template's file that the other host has: its digest. */
  digest: string | null;
}

type ArtifactPaths = Pick<Paths, "snapshots" | "checkpoints" | "recordings" | "sandbox"> &
  Parameters<typeof templateFiles>[0];

/** By device and inode. */
type Digests = ReadonlyMap<string, string>;

export class Artifacts {
  readonly #paths: ArtifactPaths;
  readonly #roomUid: RoomUid;
  /** Digests of its guests' template files. */
  #digests: Digests = new Map();
  #atOther: ReadonlySet<string> = new Set();

  constructor(paths: ArtifactPaths, roomUid: RoomUid) {
    this.#paths = paths;
    this.#roomUid = roomUid;
  }

  /**
   * Computes the digests of template files while the room runs, and returns them. `sandboxes` are those that may be carried along. The
   * digest of a file that is still a template's is known.
   */
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

  /** Notes the files present at the destination: all except `missing`. */
  without(missing: readonly string[]): void {
    this.#atOther = new Set([...this.#digests.values()].filter((digest) => !missing.includes(digest)));
  }

  /** Bytes that the other host has to store. */
  async measure(sandboxes: readonly SandboxId[]): Promise<number> {
    let sum = 0;
    for await (const { bytes } of this.all(sandboxes)) sum += bytes;
    return sum;
  }

  /** The files must not change during this. */
  async *all(sandboxes: readonly SandboxId[]): AsyncGenerator<Artifact> {
    const placed = new Map<string, string>();
    for await (const [place, path] of this.#files(sandboxes)) {
      const { key, bytes, isShared } = await fileAt(path);
      const knownDigest = this.#digests.get(key);
      const digest = knownDigest !== undefined && this.#atOther.has(knownDigest) ? knownDigest : null;
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
    // A template file on another disk is a symbolic link, and its target counts as the file.
    if (entry.isDirectory()) yield* filesIn(inside, path);
    else if (!entry.name.endsWith(".new")) yield [inside, path];
  }
}

async function fileAt(path: string): Promise<{ key: string; bytes: number; isShared: boolean }> {
  const { dev, ino, blocks, nlink } = await stat(path);
  return { key: `${dev}:${ino}`, bytes: blocks * 512, isShared: nlink > 1 };
}
