/** Usability of templates and of their snapshots: decided by the build data in their manifests. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FormatRegistry } from "@sinclair/typebox";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import {
  FILE_NAMES,
  type FileRole,
  factsOf,
  MANIFEST_FORMAT,
  type Manifest,
  SAVED_FILE,
  SNAPSHOT_FILES,
  savedWith,
} from "../../../../daemon/domain/templates/manifest.ts";
import { CURRENT, MANIFEST_FILE, makeTemplates } from "../../../../daemon/domain/templates/registry.ts";
import { processorOf } from "../../../../daemon/host/processor.ts";
import { GENERATION } from "../../../../shared/agent-protocol/messages.ts";

// The daemon has it from its HTTP library.
FormatRegistry.Set("date-time", (text) => !Number.isNaN(Date.parse(text)));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "registry-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const HOST = "A processor, features 0123456789ab";

type Made = Parameters<typeof usable>;

/** Why the snapshot of a template that was made like this is refused. */
const refusal = async (...made: Made) => (await usable(...made)).refused;

/** Writes a template that was made like this, and returns which of it may be used. */
async function usable(
  made: { [Name in keyof Manifest]?: Manifest[Name] | undefined },
  acceleration: "kvm" | "tcg" = "kvm",
  { vcpus = 1, also = async () => {} }: { vcpus?: number; also?(version: string): Promise<unknown> } = {},
) {
  const paths = makePaths({ data_dir: directory, runtime_dir: directory });
  const version = join(paths.template("t"), "0".repeat(26));
  mkdirSync(version, { recursive: true });
  symlinkSync("0".repeat(26), join(paths.template("t"), CURRENT));
  const roles = Object.keys(FILE_NAMES) as FileRole[];
  for (const role of roles) writeFileSync(join(version, FILE_NAMES[role]), role);
  const facts = await Promise.all(roles.map(async (role) => [role, await factsOf(version, role)] as const));
  const manifest: Manifest = {
    format: MANIFEST_FORMAT,
    record: {
      ...{ template_id: "t", digest: "sha256:0", description: "", min_memory_mib: 128, default_memory_mib: 128 },
      ...{ tools: [], created_at: "2026-01-01T00:00:00.000Z" },
    },
    ...{ agent_version: "0.0.0", agent_sha256: "0", generation: GENERATION, qemu_version: "10.0", processor: HOST },
    hardware: { machine_type: "m", cpu_model: "host", base_memory_mib: 128, max_plugged_mib: 0, acceleration },
    append: "",
    files: Object.fromEntries(facts) as Manifest["files"],
  };
  writeFileSync(join(version, MANIFEST_FILE), JSON.stringify({ ...manifest, ...made }));
  const templates = makeTemplates({
    groupOf: async () => null,
    paths,
    acceleration: () => acceleration,
    qemuVersion: "10.0",
    processor: HOST,
    log: makeLog("warn"),
  });
  const template = templates.get("t", null);
  if (!template) throw new Error("the template is not there");
  await also(version);
  return await templates.usable(template, vcpus);
}

/** Writes a snapshot that was saved with two processors, by this QEMU. */
async function saveWithTwo(version: string, qemu_version: string, processor = HOST): Promise<string> {
  const saved = savedWith(version, 2);
  mkdirSync(saved);
  for (const role of SNAPSHOT_FILES) writeFileSync(join(saved, FILE_NAMES[role]), `${role} of two`);
  const facts = await Promise.all(SNAPSHOT_FILES.map(async (role) => [role, await factsOf(saved, role)] as const));
  const metadata = { qemu_version, processor, files: Object.fromEntries(facts) };
  writeFileSync(join(saved, SAVED_FILE), JSON.stringify(metadata));
  return saved;
}

test("a template built on this host is used", async () => {
  expect(await refusal({})).toBeNull();
});

test("a template of another processor boots cold under KVM; under TCG QEMU's own processor is used", async () => {
  expect(await refusal({ processor: "Another, features 0" })).toMatch(/Another, features 0.*A processor/);
  rmSync(join(directory, "templates"), { recursive: true });
  expect(await refusal({ processor: "Another, features 0" }, "tcg")).toBeNull();
  rmSync(join(directory, "templates"), { recursive: true });
  expect(await refusal({ processor: undefined })).toBeNull();
});

test("a template saved under another accelerator boots cold, on a processor of this one", async () => {
  const saved = { machine_type: "m", cpu_model: "host", base_memory_mib: 128, max_plugged_mib: 0 };
  const emulated = await usable({ hardware: { ...saved, acceleration: "kvm" } }, "tcg");
  expect(emulated.refused).toMatch(/\bkvm\b.*\btcg$/);
  expect(emulated.image.hardware).toMatchObject({ acceleration: "tcg", cpu_model: expect.stringMatching(/^max,/) });
  rmSync(join(directory, "templates"), { recursive: true });
  const real = await usable({ hardware: { ...saved, cpu_model: "max,-erms", acceleration: "tcg" } }, "kvm");
  expect(real.image.hardware).toMatchObject({ acceleration: "kvm", cpu_model: "host" });
  rmSync(join(directory, "templates"), { recursive: true });
  const same = await usable({ hardware: { ...saved, cpu_model: "max,-old", acceleration: "tcg" } }, "tcg");
  expect([same.refused, same.image.hardware.cpu_model]).toEqual([null, "max,-old"]);
});

test("a template of another QEMU boots cold", async () => {
  expect(await refusal({ qemu_version: "9.2" })).toMatch(/QEMU 9\.2/);
});

test("with several processors it starts from a snapshot with as many, if whole and made on this host", async () => {
  const withTwo = async (also: (version: string) => Promise<unknown>) => {
    const found = await usable({}, "kvm", { vcpus: 2, also });
    rmSync(join(directory, "templates"), { recursive: true });
    return found;
  };
  expect((await withTwo(async () => {})).refused).toContain(" 2 processors");
  const { image, refused } = await withTwo((version) => saveWithTwo(version, "10.0"));
  expect([refused, image.snapshot_vcpus]).toEqual([null, 2]);
  for (const path of [image.snapshot_memory, image.snapshot_disk, image.snapshot_overlay]) {
    expect(path).toContain("/processors-2/");
  }
  expect(image.root).not.toContain("/processors-2/");
  expect((await withTwo((version) => saveWithTwo(version, "9.2"))).refused).toMatch(/QEMU 9\.2/);
  expect((await withTwo((version) => saveWithTwo(version, "10.0", "Another"))).refused).toMatch(/another processor/);
  const spoiled = await withTwo(async (version) => {
    const saved = await saveWithTwo(version, "10.0");
    writeFileSync(join(saved, FILE_NAMES.memory), "memory of owt");
  });
  expect(spoiled).toMatchObject({
    refused: expect.stringMatching(/^memory /),
    image: { snapshot_memory: null },
  });
});

test("a template whose agent has another protocol is unusable, with a remedy", async () => {
  await expect(refusal({ generation: GENERATION + 1 })).rejects.toThrow(`generation ${GENERATION + 1} `);
});

test("a processor is identified by its model and features, in any order of the kernel", () => {
  const one = processorOf("processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu sse avx\n");
  expect(one).toMatch(/^Some CPU, features [0-9a-f]{12}$/);
  expect(processorOf("model name : Some CPU\nflags : avx fpu sse\n")).toBe(one);
  expect(processorOf("model name : Some CPU\nflags : fpu sse\n")).not.toBe(one);
  expect(processorOf()).toMatch(/features/);
});

test("a template's start programs have their time when a sandbox boots", async () => {
  expect((await usable({ start_seconds: 90 })).image.start_ms).toBe(90_000);
});

test("a manifest without a start time gives zero", async () => {
  expect((await usable({})).image.start_ms).toBe(0);
});
