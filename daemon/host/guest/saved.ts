/**
 * Owns what is said on disk of a guest that was saved: on what its memory has to be loaded, and by what host and agent know each
 * other. It is written last and forgotten first, so that what it says is there is whole: without it there is nothing to restore.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { faultPoint } from "../../core/fault-points.ts";
import type { SavedPaths } from "../../core/paths.ts";
import { digestFile } from "../images/digest.ts";
import { layersIn } from "../images/layers.ts";

/** Raised when what was saved by older daemons cannot be restored any more. */
const FORMAT = 1;

const saved = Type.Object({
  format: Type.Literal(FORMAT),
  qemu_version: Type.String(),
  /** The host's, as processorOf tells it. */
  processor: Type.String(),
  machine: Type.Object({
    hardware: Type.Object({
      machine_type: Type.String(),
      cpu_model: Type.String(),
      base_memory_mib: Type.Integer(),
      max_plugged_mib: Type.Integer(),
      acceleration: Type.Union([Type.Literal("kvm"), Type.Literal("tcg")]),
      drive_ports: Type.Integer(),
      returns_memory: Type.Boolean(),
    }),
    append: Type.String(),
    agent_generation: Type.Integer(),
  }),
  /** The layer of its disk that is on top. */
  disk: Type.String({ pattern: "^disk(-\\w+)?\\.qcow2$" }),
  /** What its guest is told that it is, once it goes on; as it was where nothing is said. */
  restored_as: Type.Optional(Type.Union([Type.Literal("rolled_back"), Type.Literal("forked")])),
  /** The file of its memory; null of one whose disk alone was taken. */
  memory: Type.Union([Type.String({ pattern: "^memory(-\\w+)?$" }), Type.Null()]),
  /** The vsock device that was saved with the rest; null where one is plugged into what is restored. */
  vsock: Type.Union([Type.Literal("kernel"), Type.Null()]),
  known: Type.Object({
    secret: Type.Union([Type.String(), Type.Null()]),
    nonce: Type.Union([Type.String(), Type.Null()]),
  }),
});
export type Saved = Static<typeof saved>;
export type SavedFacts = Omit<Saved, "format">;
export type RestoredAs = NonNullable<Saved["restored_as"]>;

type Place = Pick<SavedPaths, "directory" | "saved">;

const MEMORY = /^memory(?:-\w+)?$/;

/** Makes what was saved whole: from here on it is what there is of the guest. */
export async function keepSaved(paths: Place, facts: SavedFacts): Promise<void> {
  await faultPoint("hibernate.saved");
  const whole: Saved = { format: FORMAT, ...facts };
  if (!Value.Check(saved, whole)) throw new Error("what is known of the guest is not what has to be");
  const draft = `${paths.saved}.new`;
  await writeFile(draft, JSON.stringify(whole), { mode: 0o600 });
  await synced(draft);
  await rename(draft, paths.saved);
  await synced(paths.directory);
  await faultPoint("hibernate.kept");
}

/** What was saved is of no use any more, or was never whole. Its memory goes later: that takes a while. */
export async function forgetSaved(paths: Place): Promise<void> {
  if (isSaved(paths)) {
    await rm(paths.saved);
    await synced(paths.directory);
  }
  await removeMemory(paths);
}

/** Removes all memory that was saved but what `kept` names. */
export async function removeMemory(
  { directory }: Pick<SavedPaths, "directory">,
  kept: string | null = null,
): Promise<void> {
  for (const name of memoryIn(directory)) if (name !== kept) await rm(join(directory, name), { force: true });
}

function memoryIn(directory: string): string[] {
  return unlessGone(() => readdirSync(directory).filter((name) => MEMORY.test(name)));
}

/** Bytes that a guest takes on disk: the layers of its disk, some of which a snapshot may share, and its memory where it was saved. */
export function diskUse({ directory }: Pick<SavedPaths, "directory">): number {
  const names = [...unlessGone(() => layersIn(directory)), ...memoryIn(directory)];
  return names.reduce((sum, name) => sum + bytesOf(join(directory, name)), 0);
}

/** Bytes that a file takes; 0 where there is none. */
export function bytesOf(file: string): number {
  return (statSync(file, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
}

function unlessGone(look: () => string[]): string[] {
  try {
    return look();
  } catch {
    return [];
  }
}

export function isSaved(paths: Place): boolean {
  return existsSync(paths.saved);
}

/** Throws where it is not there, or is of another form. */
export async function readSaved(paths: Place): Promise<Saved> {
  const value: unknown = JSON.parse(await readFile(paths.saved, "utf8"));
  if (!Value.Check(saved, value)) throw new Error("what was saved has a form that this roomd does not know");
  return value;
}

/** Over what a snapshot has itself: its memory, and the layer on top of its disk with what that lies over. */
export async function digestSaved(paths: Place): Promise<string> {
  const { disk, memory } = await readSaved(paths);
  const hash = createHash("sha256");
  for (const name of [disk, memory]) {
    if (name !== null) hash.update(`${name} ${await digestFile(join(paths.directory, name))}\n`);
  }
  return `sha256:${hash.digest("hex")}`;
}

/** What was written to it is on disk. */
export async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
