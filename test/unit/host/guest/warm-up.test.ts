/**
 * Rehearsal of a machine of the pool, and that it is usable afterwards or reports that it is not; its QEMU and its devices are simulated.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type SandboxPaths } from "../../../../daemon/core/config/paths.ts";
import { newRecord, RecordFile, readRecord } from "../../../../daemon/host/guest/record.ts";
import type { Launched } from "../../../../daemon/host/guest/start.ts";
import { warmUp } from "../../../../daemon/host/guest/warm-up.ts";
import type { GuestLink } from "../../../../daemon/host/guest-link/handshake.ts";
import { processOf } from "../../../../daemon/host/process.ts";
import { DEVICES_WANTED_LINE, REHEARSED_LINE } from "../../../../shared/agent-protocol/messages.ts";
import { newId } from "../../../../shared/ids.ts";

interface World {
  acceleration: "kvm" | "tcg";
  kind: "kernel" | "vhost-user";
  /** The agent's output after the word. */
  says: string;
  /** The operation that fails. */
  fails?: "open" | "unplug";
  /** Whether the agent dials, twice. */
  dials: boolean;
}

const USUAL: World = { acceleration: "tcg", kind: "vhost-user", says: DEVICES_WANTED_LINE, dials: true };
const sandbox_id = newId("sbx");
let home: string;
let paths: SandboxPaths;
let did: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "roomd-rehearse-"));
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }).sandbox(sandbox_id);
  for (const directory of [paths.directory, paths.runtime, dirname(paths.vmm_log)])
    await mkdir(directory, { recursive: true });
  did = [];
});
afterEach(() => rmSync(home, { recursive: true }));

/** A machine in such a world; `did` is the list of operations on it, in order. */
async function partsIn(world: World): Promise<Launched["parts"]> {
  let hear: (bytes: Uint8Array) => void = () => {};
  const say = (line: string) => hear(new TextEncoder().encode(`\n${line}\n`));
  let dial: () => unknown = () => {};
  const link = () => ({ close: () => did.push("refused") }) as unknown as GuestLink;
  const transport = {
    kind: world.kind,
    open: async (_address: unknown, onLink: (link: GuestLink) => void) => {
      if (world.fails === "open") throw new Error("no device");
      did.push("opened");
      dial = () => world.dials && [link(), link()].map(onLink);
      return { process: null, device: {}, close: async () => void did.push("closed") };
    },
  };
  const machine = {
    process: { ...processOf(process.pid), exited: new Promise(() => {}) },
    onConsole: (listener: typeof hear) => {
      hear = listener;
      return () => {};
    },
    typeLine: () => say(world.says),
    resume: async () => void did.push("resumed"),
    resizeMemory: async (mib: number) => void did.push(`given ${mib}`),
    pause: async () => void did.push("paused"),
    plugVsock: async () => {
      did.push("plugged");
      dial();
    },
    unplugVsock: async () => {
      if (world.fails === "unplug") throw new Error("it stays");
      did.push("unplugged");
    },
    unplugDrive: async () => {},
  };
  const record = new RecordFile(paths.processes, newRecord(sandbox_id, "snapshot"));
  const host = {
    transport,
    transportOf: () => transport,
    isolation: { usersOf: () => null, newDriveRoot: () => 0 },
    confinement: { groupOf: () => null, enter: () => null },
    log: { warn: (message: string) => did.push(message) },
  };
  const plan = {
    sandbox_id,
    paths,
    memory_mib: 512,
    image: { hardware: { acceleration: world.acceleration }, agent_generation: 2 },
  };
  return { plan, host, machine, record } as unknown as Launched["parts"];
}

const WITH_DEVICES = ["resumed", "given 512", "opened", "plugged", "refused", "unplugged", "closed", "paused"];

test.each<[string, Partial<World>, string[]]>([
  ["an emulated machine has devices, and meets its dialling agent once", {}, WITH_DEVICES],
  ["under KVM nothing is translated", { acceleration: "kvm" }, ["resumed", "given 512", "paused"]],
  ["the kernel's vsock can be plugged once", { kind: "kernel" }, ["resumed", "given 512", "paused"]],
  ["an older agent requests none", { says: REHEARSED_LINE }, ["resumed", "given 512", "paused"]],
  [
    "a machine that does not get its devices rehearses without them",
    { fails: "open" },
    [
      "resumed",
      "given 512",
      "failed to set up stand-in devices for a pooled machine; it warms up without devices",
      "paused",
    ],
  ],
])("%s", async (_what, change, expected) => {
  await warmUp(await partsIn({ ...USUAL, ...change }), new AbortController().signal);
  expect(did).toEqual(expected);
  expect(readRecord(paths.processes) ?? {}).toMatchObject(expected.length > 3 ? { virtiofsd: null, vsock: null } : {});
});

test("a machine that does not release its devices is unusable, and they are ended", async () => {
  await expect(warmUp(await partsIn({ ...USUAL, fails: "unplug" }), new AbortController().signal)).rejects.toThrow(
    "it stays",
  );
  expect(did.at(-1)).toBe("closed");
});

test("a caller that takes it waits neither for its message nor for its dial", async () => {
  const taken = new AbortController();
  const waiting = warmUp(await partsIn({ ...USUAL, dials: false }), taken.signal);
  setTimeout(() => taken.abort(), 20);
  await waiting;
  expect(did).toEqual(WITH_DEVICES.filter((each) => each !== "refused"));
  did = [];
  await warmUp(await partsIn({ ...USUAL, says: "" }), AbortSignal.abort());
  expect(did).toEqual(["resumed", "given 512", "paused"]);
});
