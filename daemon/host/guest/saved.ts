/**
 * Owns what is said on disk of a guest that was saved: on what its memory has to be loaded, and by what host and agent know each
 * other. It is written last and forgotten first, so that what it says is there is whole: without it there is nothing to restore.
 */
import { existsSync, statSync } from "node:fs";
import { open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { faultPoint } from "../../core/fault-points.ts";
import type { SandboxPaths } from "../../core/paths.ts";

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
  known: Type.Object({
    secret: Type.Union([Type.String(), Type.Null()]),
    nonce: Type.Union([Type.String(), Type.Null()]),
  }),
});
export type Saved = Static<typeof saved>;
export type SavedFacts = Omit<Saved, "format">;

type Place = Pick<SandboxPaths, "directory" | "memory" | "saved">;

/** Makes what was saved whole: from here on it is what there is of the guest. Its memory is on disk when this resolves. */
export async function keepSaved(paths: Place, facts: SavedFacts): Promise<void> {
  await synced(paths.memory);
  await faultPoint("hibernate.saved");
  const draft = `${paths.saved}.new`;
  await writeFile(draft, JSON.stringify({ format: FORMAT, ...facts }), { mode: 0o600 });
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
  await rm(paths.memory, { force: true });
}

/** Bytes that a guest takes on disk: what it changed, and its memory where it was saved. */
export function diskUse({ overlay, memory }: Pick<SandboxPaths, "overlay" | "memory">): number {
  const blocks = [overlay, memory].map((file) => statSync(file, { throwIfNoEntry: false })?.blocks ?? 0);
  return blocks.reduce((sum, each) => sum + each) * 512;
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

async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
