/**
 * Metadata of a saved guest, on disk: the host that its memory has to be loaded on, and the credentials by which host and agent recognize
 * each other. It is written last and removed first, so that the state it describes is whole: without it there is nothing to restore.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { SavedPaths } from "../../core/config/paths.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { synced } from "../files/synced.ts";
import { digestFile } from "../images/digest.ts";
import { layersIn } from "../images/layers.ts";

/** Raised when state saved by older daemons can no longer be restored. */
const FORMAT = 1;

const saved = Type.Object({
  format: Type.Literal(FORMAT),
  qemu_version: Type.String(),
  /** The host's, as processorOf returns it. */
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
  /** The top layer of its disk. */
  disk: Type.String({ pattern: "^disk(-\\w+)?\\.qcow2$" }),
  /** Kind of restore that its agent is notified of on resume; absent: it resumes as it was. */
  restored_as: Type.Optional(Type.Union([Type.Literal("rolled_back"), Type.Literal("forked")])),
  /** The file of its memory; null if only its disk was saved. */
  memory: Type.Union([Type.String({ pattern: "^memory(-\\w+)?$" }), Type.Null()]),
  /** The vsock device that was saved with the rest; null if one is plugged on restore. */
  vsock: Type.Union([Type.Literal("kernel"), Type.Null()]),
  /** Whether its agent can become another sandbox's, or be rolled back. */
  restores: Type.Boolean(),
  known: Type.Object({
    secret: Type.Union([Type.String(), Type.Null()]),
    nonce: Type.Union([Type.String(), Type.Null()]),
  }),
});
export type Saved = Static<typeof saved>;
export type SavedFacts = Omit<Saved, "format">;
export type RestoredAs = NonNullable<Saved["restored_as"]>;

type SavedLocation = Pick<SavedPaths, "directory" | "saved">;

const MEMORY = /^memory(?:-\w+)?$/;

/** Commits the saved state: from here on it is the state of the guest. */
export async function keepSaved(paths: SavedLocation, facts: SavedFacts): Promise<void> {
  await faultPoint("hibernate.saved");
  const whole: Saved = { format: FORMAT, ...facts };
  if (!Value.Check(saved, whole)) throw new Error("the guest's record is incomplete");
  const draft = `${paths.saved}.new`;
  await writeFile(draft, JSON.stringify(whole), { mode: 0o600 });
  await synced(draft);
  await rename(draft, paths.saved);
  await synced(paths.directory);
  await faultPoint("hibernate.kept");
}

/** Invalidates saved state that is obsolete, or was never whole. Its memory is removed afterwards: that takes a while. */
export async function forgetSaved(paths: SavedLocation): Promise<void> {
  if (isSaved(paths)) {
    await rm(paths.saved);
    await synced(paths.directory);
  }
  await removeMemory(paths);
}

/** Removes all saved memory. */
export async function removeMemory({ directory }: Pick<SavedPaths, "directory">): Promise<void> {
  for (const name of memoryIn(directory)) await rm(join(directory, name), { force: true });
}

function memoryIn(directory: string): string[] {
  return unlessGone(() => readdirSync(directory).filter((name) => MEMORY.test(name)));
}

/** Bytes that a guest takes on disk: the layers of its disk, some of which a snapshot may share, and its saved memory. */
export function diskUse({ directory }: Pick<SavedPaths, "directory">): number {
  const names = [...unlessGone(() => layersIn(directory)), ...memoryIn(directory)];
  return names.reduce((sum, name) => sum + bytesOf(join(directory, name)), 0);
}

/** Bytes that a file takes; 0 if it does not exist. */
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

export function isSaved(paths: SavedLocation): boolean {
  return existsSync(paths.saved);
}

/** Throws if it is absent, or has another format. */
export async function readSaved(paths: SavedLocation): Promise<Saved> {
  const value: unknown = JSON.parse(await readFile(paths.saved, "utf8"));
  if (!Value.Check(saved, value)) throw new Error("the saved state has a format that this roomd does not know");
  return value;
}

/** Over a snapshot's own content: its memory, and the top layer of its disk with the reference to its backing file. */
export async function digestSaved(paths: SavedLocation): Promise<string> {
  const { disk, memory } = await readSaved(paths);
  const hash = createHash("sha256");
  for (const name of [disk, memory]) {
    if (name !== null) hash.update(`${name} ${await digestFile(join(paths.directory, name))}\n`);
  }
  return `sha256:${hash.digest("hex")}`;
}
