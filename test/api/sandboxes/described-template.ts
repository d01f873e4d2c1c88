/**
 * A template that consists of its manifest only: enough for all rules on a request that names it, but no guest can start from it. A daemon
 * reads it like the output of `roomd template build`. Its files, if requested, have one byte each: enough for a fake QEMU.
 */
import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  FILE_NAMES,
  type FileRole,
  MANIFEST_FORMAT,
  type Manifest,
} from "../../../daemon/domain/templates/manifest.ts";
import { CURRENT, MANIFEST_FILE } from "../../../daemon/domain/templates/registry.ts";
import { GENERATION } from "../../../shared/agent-protocol/messages.ts";
import type { TestDaemon } from "../../harness/daemon.ts";

export const DESCRIBED_MIN_MIB = 192;
export const DESCRIBED_BASE_MIB = 128;
/** More than any host has. */
const NO_BOUND_MIB = 2 ** 30;
const ONLY_BYTE = "x";
const OVERLAYS: readonly FileRole[] = ["snapshot_overlay", "cold_overlay"];
const VERSION = "1".padStart(26, "0");

export function describeTemplate(
  daemon: Pick<TestDaemon, "dataDir">,
  templateId = "default",
  {
    maxPluggedMib = NO_BOUND_MIB,
    files = false,
    diskGib,
  }: { maxPluggedMib?: number; files?: boolean; diskGib?: number } = {},
): Manifest["record"] {
  const record = {
    template_id: templateId,
    digest: `sha256:${"0".repeat(64)}`,
    description: "A manifest without files",
    min_memory_mib: DESCRIBED_MIN_MIB,
    default_memory_mib: 512,
    tools: ["git"],
    created_at: "2026-01-31T12:00:00.000Z",
  };
  const roles = Object.keys(FILE_NAMES) as FileRole[];
  const bytesOf = (role: FileRole) => (OVERLAYS.includes(role) ? qcow2Header(diskGib ?? 1) : Buffer.from(ONLY_BYTE));
  const manifest: Manifest = {
    format: MANIFEST_FORMAT,
    record,
    agent_version: "0.1.0",
    agent_sha256: record.digest,
    generation: GENERATION,
    qemu_version: "10.0.0",
    hardware: {
      machine_type: "q35",
      cpu_model: "qemu64",
      base_memory_mib: DESCRIBED_BASE_MIB,
      max_plugged_mib: maxPluggedMib,
      acceleration: "tcg",
    },
    append: "",
    files: Object.fromEntries(
      roles.map((role) => [
        role,
        { name: FILE_NAMES[role], digest: digestOf(bytesOf(role)), size_bytes: bytesOf(role).byteLength },
      ]),
    ) as Manifest["files"],
  };
  const directory = join(daemon.dataDir, "templates", templateId);
  mkdirSync(join(directory, VERSION), { recursive: true });
  writeFileSync(join(directory, VERSION, MANIFEST_FILE), JSON.stringify(manifest));
  if (files) for (const role of roles) writeFileSync(join(directory, VERSION, FILE_NAMES[role]), bytesOf(role));
  if (diskGib !== undefined) writeFileSync(join(directory, VERSION, FILE_NAMES.cold_overlay), qcow2Header(diskGib));
  symlinkSync(VERSION, join(directory, CURRENT));
  return record;
}

/** As digestFile has it, of a file of one block. */
function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(`${bytes.byteLength}\n0\n`).update(bytes).digest("hex");
}

/** The part of a qcow2 header with the virtual size and the backing file. */
function qcow2Header(gib: number): Buffer {
  const below = Buffer.from("../root.qcow2");
  const header = Buffer.concat([Buffer.alloc(104), below]);
  header.write("QFI\u00fb", 0, "latin1");
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(104n, 8);
  header.writeUInt32BE(below.byteLength, 16);
  header.writeBigUInt64BE(BigInt(gib) * 1024n ** 3n, 24);
  return header;
}
