/** A template's manifest: its files, and the facts that a restore depends on. */
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { fields } from "../../../shared/api/contract.ts";
import { template } from "../../../shared/api/templates.ts";
import { newId } from "../../../shared/ids.ts";
import type { GuestImage } from "../../host/guest/plan.ts";
import { digestFile } from "../../host/images/digest.ts";

/** Increased when templates of an older format become unusable. */
export const MANIFEST_FORMAT = 1;

/** Number of drive ports of templates without that field in their manifest. */
const DRIVE_PORTS_UNSAID = 2;

const file = fields({ name: Type.String(), digest: Type.String(), size_bytes: Type.Integer() });

export const manifest = fields({
  format: Type.Literal(MANIFEST_FORMAT),
  record: template,
  agent_version: Type.String(),
  /** Plain SHA-256 of the agent's file, comparable with standard tools. */
  agent_sha256: Type.String(),
  generation: Type.Integer(),
  qemu_version: Type.String(),
  /** The host's, as returned by `processorOf`; absent in older templates. */
  processor: Type.Optional(Type.String()),
  hardware: fields({
    machine_type: Type.String(),
    cpu_model: Type.String(),
    base_memory_mib: Type.Integer(),
    max_plugged_mib: Type.Integer(),
    acceleration: Type.Union([Type.Literal("kvm"), Type.Literal("tcg")]),
    /** Absent in older templates. */
    drive_ports: Type.Optional(Type.Integer({ minimum: 1, maximum: 7 })),
    /** Absent in older templates, which have no device for it. */
    returns_memory: Type.Optional(Type.Boolean()),
  }),
  append: Type.String(),
  /** Timeout for the recipe's start when a sandbox boots; absent in older templates and if nothing is started. */
  start_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
  files: fields({
    kernel: file,
    initramfs: file,
    root: file,
    disk: file,
    memory: file,
    snapshot_overlay: file,
    cold_overlay: file,
  }),
});
/** Facts that a snapshot with several processors depends on; stored beside it. */
export const savedFacts = Type.Object({
  qemu_version: Type.String(),
  processor: Type.Optional(Type.String()),
  files: Type.Object({ disk: file, memory: file, snapshot_overlay: file }),
});
export type SavedFacts = Static<typeof savedFacts>;

export type Manifest = Static<typeof manifest>;
export type FileFacts = Static<typeof file>;
export type FileRole = keyof Manifest["files"];

export const FILE_NAMES: Record<FileRole, string> = {
  kernel: "vmlinuz",
  initramfs: "initramfs.img",
  root: "root.qcow2",
  disk: "disk.qcow2",
  memory: "memory",
  snapshot_overlay: "snapshot-overlay.qcow2",
  cold_overlay: "cold-overlay.qcow2",
};

/** Files required to start a guest at all; the others only speed up the start. */
export const COLD_FILES: readonly FileRole[] = ["kernel", "initramfs", "root", "cold_overlay"];
export const SNAPSHOT_FILES = ["disk", "memory", "snapshot_overlay"] as const satisfies readonly FileRole[];

/** Directory of the snapshot with `vcpus` processors, for the template's version in `directory`. */
export function savedWith(directory: string, vcpus: number): string {
  return vcpus === 1 ? directory : join(directory, `processors-${vcpus}`);
}

/** Unique name of a directory that is renamed to the saved one when complete. */
export function draftOf(directory: string, vcpus: number): string {
  return join(directory, `${DRAFT}${vcpus}-${newId("evt")}`);
}

const DRAFT = ".processors-";
/** Whether a directory of this name is a draft. */
export const isDraft = (name: string): boolean => name.startsWith(DRAFT);

/** Name of the file of SavedFacts. */
export const SAVED_FILE = "saved.json";

export async function factsOf(directory: string, role: FileRole): Promise<FileFacts> {
  const name = FILE_NAMES[role];
  const path = join(directory, name);
  return { name, digest: await digestFile(path), size_bytes: statSync(path).size };
}

/** One digest for the whole template, over its files' digests in the order of their roles. */
export function digestOf(files: Manifest["files"]): string {
  const lines = Object.entries(files).map(([role, facts]) => `${role} ${facts.digest}`);
  return `sha256:${createHash("sha256").update(lines.sort().join("\n")).digest("hex")}`;
}

/** Image from which a guest starts: the template's files in `directory`, with or without the snapshot for this number of processors. */
export function imageOf(
  directory: string,
  { hardware, append, generation, start_seconds = 0 }: Manifest,
  useSnapshot: boolean,
  vcpus = 1,
): GuestImage {
  const pathOf = (role: FileRole) => join(directory, FILE_NAMES[role]);
  return {
    hardware: {
      ...hardware,
      drive_ports: hardware.drive_ports ?? DRIVE_PORTS_UNSAID,
      returns_memory: hardware.returns_memory ?? false,
    },
    kernel: pathOf("kernel"),
    initramfs: pathOf("initramfs"),
    append,
    root: pathOf("root"),
    cold_overlay: pathOf("cold_overlay"),
    ...savedIn(savedWith(directory, vcpus), useSnapshot),
    snapshot_vcpus: vcpus,
    agent_generation: generation,
    start_ms: start_seconds * 1000,
  };
}

/** The files of an image that were saved to a directory. */
export function savedIn(
  directory: string,
  isUsed: boolean,
): Pick<GuestImage, "snapshot_disk" | "snapshot_overlay" | "snapshot_memory"> {
  return {
    snapshot_disk: join(directory, FILE_NAMES.disk),
    snapshot_overlay: join(directory, FILE_NAMES.snapshot_overlay),
    snapshot_memory: isUsed ? join(directory, FILE_NAMES.memory) : null,
  };
}
