/**
 * State that a daemon finds of a guest after the guest's own daemon was killed before or after any change of its record: whether it is
 * adopted, with which facts, which processes are ended as unowned, and that all of it can be ended. The processes only have the arguments
 * of real ones.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type SandboxPaths } from "../../../../daemon/core/config/paths.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { adoptGuest, QEMU_ENDED } from "../../../../daemon/host/guest/adopt.ts";
import { endProcesses, endUnrecorded, guestProcesses } from "../../../../daemon/host/guest/leftovers.ts";
import type { GuestHost, GuestPlan, SavedMachine } from "../../../../daemon/host/guest/plan.ts";
import { plugDrive, plugVsock } from "../../../../daemon/host/guest/plug.ts";
import { type ChangeKind, newRecord, RecordFile, readRecord } from "../../../../daemon/host/guest/record.ts";
import type { VsockEndpoint } from "../../../../daemon/host/guest-link/transports/transport.ts";
import type { Machine } from "../../../../daemon/host/machine/machine.ts";
import { isAlive, type ProcessRecord, processOf } from "../../../../daemon/host/process.ts";
import { newId } from "../../../../shared/ids.ts";
import { commandLineOf, until } from "../../../harness/guests.ts";

const MACHINE = {} as SavedMachine;
const CID = 9100;
const KNOWN = { secret: "c2VjcmV0", nonce: "abc" };
const KINDS = [
  "launched",
  "rehearsing",
  "rehearsed",
  "served",
  "linked",
  "drive_replaced",
  "drive_mounted",
  "vsock_replaced",
] as const;

type Part =
  | "qemu"
  | "rehearsal virtiofsd"
  | "rehearsal vsock"
  | "virtiofsd"
  | "vsock"
  | "next virtiofsd"
  | "next vsock";

/** How a guest reaches each of its changes: processes started just before, processes replaced, and the known facts after it. */
const LIFE: Record<ChangeKind, { started: Part[]; ended: Part[]; facts: object; adopted: string | RegExp }> = {
  launched: {
    started: ["qemu"],
    ended: [],
    facts: { uuid: "u", guest_cid: null, nonce: null },
    adopted: /another CID/,
  },
  rehearsing: {
    started: ["rehearsal virtiofsd", "rehearsal vsock"],
    ended: [],
    facts: { uuid: "u", guest_cid: null, drive: { turn: 0, ports: 0, mounted: false } },
    adopted: /another CID/,
  },
  rehearsed: {
    started: [],
    ended: ["rehearsal virtiofsd", "rehearsal vsock"],
    facts: { uuid: "u", guest_cid: null, virtiofsd: null, vsock: null },
    adopted: /another CID/,
  },
  served: {
    started: ["virtiofsd", "vsock"],
    ended: [],
    facts: { guest_cid: CID, nonce: null, secret: KNOWN.secret, drive: { turn: 0, ports: 3, mounted: false } },
    adopted: "not_ready",
  },
  linked: {
    started: [],
    ended: [],
    facts: { ...KNOWN, drive: { turn: 0, ports: 3, mounted: true } },
    adopted: "not_ready",
  },
  drive_replaced: {
    started: ["next virtiofsd"],
    ended: ["virtiofsd"],
    facts: { ...KNOWN, drive: { turn: 1, ports: 3, mounted: false } },
    adopted: "not_ready",
  },
  drive_mounted: {
    started: [],
    ended: [],
    facts: { ...KNOWN, drive: { turn: 1, ports: 3, mounted: true } },
    adopted: "not_ready",
  },
  vsock_replaced: {
    started: ["next vsock"],
    ended: ["vsock"],
    facts: { ...KNOWN, uuid: "u", guest_cid: CID, drive: { turn: 1, ports: 3, mounted: true } },
    adopted: "not_ready",
  },
};

let home: string;
let paths: SandboxPaths;
const children: ChildProcess[] = [];

beforeEach(() => {
  home = mkdtempSync("/tmp/roomd-u-");
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }).sandbox(newId("sbx"));
  for (const directory of [paths.directory, paths.runtime]) mkdirSync(directory, { recursive: true });
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

async function start(part: Part): Promise<ProcessRecord> {
  const argv = {
    qemu: ["-chardev", `socket,id=qmp,path=${paths.qmp},server=on`],
    virtiofsd: ["--socket-path", paths.virtiofs],
    vsock: ["--socket", paths.vsock_device],
  }[part.replace(/^(next|rehearsal) /, "") as "qemu" | "virtiofsd" | "vsock"];
  const child = spawn("sh", ["-c", "while :; do read -r line; done", ...argv], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  children.push(child);
  await until("the process's arguments are set", () => commandLineOf(child.pid ?? 0).includes(argv.at(-1) ?? ""));
  return processOf(child.pid ?? 0) as ProcessRecord;
}

/** Proceeds up to a change, and stops just before it is written, or just after. */
async function live(to: ChangeKind, written: boolean) {
  const record = new RecordFile(paths.processes, newRecord("sbx", "cold"));
  const running = new Map<Part, ProcessRecord>();
  for (const kind of KINDS.slice(0, KINDS.indexOf(to) + 1)) {
    for (const part of LIFE[kind].ended) {
      process.kill(-(running.get(part)?.pid ?? 0), "SIGKILL");
      await until(`${part} has ended`, () => !isAlive(running.get(part) as ProcessRecord));
      running.delete(part);
    }
    for (const part of LIFE[kind].started) running.set(part, await start(part));
    const of = (part: Part) => running.get(part) as ProcessRecord;
    if (kind === to && !written) break;
    if (kind === "launched") await record.advance(kind, { uuid: "u", qemu: of("qemu"), machine: MACHINE });
    else if (kind === "rehearsing") {
      await record.advance(kind, { virtiofsd: of("rehearsal virtiofsd"), vsock: of("rehearsal vsock") });
    } else if (kind === "rehearsed") await record.advance(kind, {});
    else if (kind === "served") {
      const processes = { virtiofsd: of("virtiofsd"), vsock: of("vsock") };
      await record.advance(kind, { ...processes, guest_cid: CID, ports: 3, known: { ...KNOWN, nonce: null } });
    } else if (kind === "linked") await record.advance(kind, { known: KNOWN });
    else if (kind === "drive_replaced") await record.advance(kind, { virtiofsd: of("next virtiofsd") });
    else if (kind === "drive_mounted") await record.advance(kind, {});
    else await record.advance(kind, { vsock: of("next vsock") });
  }
  return running;
}

/** Progress of an adoption on a host that has no transport now; it checks the record before. */
async function adopt(): Promise<string> {
  const host = {
    transportOf: () => {
      throw new ServiceError("not_ready", { detail: "not now" });
    },
  } as unknown as GuestHost;
  const plan = { guest_cid: CID, paths } as GuestPlan;
  const adopting = adoptGuest(() => host, plan, "cold", "running", new AbortController().signal);
  return await adopting.then(
    () => "adopted",
    (error: unknown) => (error instanceof ServiceError ? error.code : String(error)),
  );
}

const before = (kind: ChangeKind) => KINDS[KINDS.indexOf(kind) - 1];
const moments = KINDS.flatMap((kind) => [[kind, false] as const, [kind, true] as const]);

test.each(moments)("killed at %s, written: %s", async (kind, written) => {
  const running = await live(kind, written);
  const known = written ? kind : before(kind);
  const record = readRecord(paths.processes);
  if (known === undefined) {
    expect([record, await adopt()]).toEqual([null, expect.stringContaining(QEMU_ENDED)]);
  } else {
    expect(record).toMatchObject(LIFE[known].facts);
    expect(await adopt()).toMatch(LIFE[known].adopted);
  }

  // A process that was started and not recorded is unowned; without any record the whole guest is.
  const serving =
    (await guestProcesses(join(home, "run", "g"))).get(record ? (paths.runtime.split("/").at(-1) ?? "") : "") ?? [];
  await endUnrecorded(paths, serving);
  const strays = written || known === undefined ? [] : LIFE[kind].started;
  const alive = [...running].filter(([, process]) => isAlive(process)).map(([part]) => part);
  expect(alive).toEqual([...running.keys()].filter((part) => !strays.includes(part)));

  await endProcesses(paths);
  expect([...running].filter(([, process]) => isAlive(process))).toEqual([]);
});

test("code that plugs a device before it is recorded does not compile", async () => {
  const plugged: unknown[] = [];
  const machine = {
    plugVsock: async (device: unknown) => void plugged.push(device),
    plugDrive: async (...args: unknown[]) => void plugged.push(args),
  } as unknown as Machine;
  const endpoint = { device: "device" } as unknown as VsockEndpoint;
  const own = processOf(process.pid) as ProcessRecord;
  const record = new RecordFile(paths.processes, newRecord("sbx", "cold"));
  const launched = await record.advance("launched", { uuid: "u", qemu: own, machine: MACHINE });
  // @ts-expect-error a machine that is launched has no devices in its record
  const tooEarly = () => [plugVsock(machine, endpoint, launched), plugDrive(machine, paths, launched)];
  expect(tooEarly).toBeTypeOf("function");
  const served = { guest_cid: CID, virtiofsd: own, vsock: own, ports: 3, known: KNOWN };
  await plugVsock(machine, endpoint, await record.advance("served", served));
  const replaced = await record.advance("drive_replaced", { virtiofsd: own });
  await plugDrive(machine, paths, replaced);
  // @ts-expect-error of a drive that was replaced the vsock device is not told
  const other = () => plugVsock(machine, endpoint, replaced);
  expect([other.length, plugged]).toEqual([0, ["device", [paths.virtiofs, "drive1", 1]]]);
});
