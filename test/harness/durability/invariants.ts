/**
 * Invariants of a daemon at rest, whatever happened to it before:
 *
 *     rows = processes = CIDs = sockets = directories = metered objects = the API's view,
 *
 * nothing is orphaned, and the audit is complete. Each violation is reported in a sentence.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makePaths, type SandboxPaths } from "../../../daemon/core/config/paths.ts";
import { GUEST_CID_MAX, GUEST_CID_MIN } from "../../../shared/ids.ts";
import type { Json, TestDaemon } from "../daemon.ts";
import { LOGS, until } from "../guests.ts";
import { descriptorsOf, mountsOf, type Session, sessionsOf, zombiesOf } from "../host-facts.ts";
import { type Rows, rowsOf, type SandboxFacts } from "./rows.ts";

const REST_DEADLINE_MS = 45_000;
/** States of a sandbox with a guest; every other state except failed and hibernated is transitional. */
const WITH_GUEST = new Set(["running", "paused"]);

/** Waits until all of it holds; fails with every break of the last look. */
export async function expectAtRest(daemon: TestDaemon, deadlineMs = REST_DEADLINE_MS): Promise<void> {
  let broken: string[] = [];
  try {
    await until(
      "the service is at rest",
      async () => {
        // Something that vanishes during the check is not at rest.
        broken = await violations(daemon).catch((error: unknown) => [String(error)]);
        return broken.length === 0;
      },
      deadlineMs,
    );
  } catch (error) {
    throw new Error(`what must hold at rest does not:\n${broken.map((each) => `- ${each}`).join("\n")}`, {
      cause: error,
    });
  }
}

/** Every current violation of the invariants at rest. */
export async function violations(daemon: TestDaemon): Promise<string[]> {
  const rows = rowsOf(daemon);
  const sessions = sessionsOf(daemon);
  const guests = rows.sandboxes.filter(({ state }) => WITH_GUEST.has(state));
  const waiting = waitingIn(daemon, rows);
  return [
    ...onTheirWay(rows),
    ...guests.flatMap((row) => ofGuest(daemon, row, sessions)),
    ...ofPool(daemon, waiting, sessions),
    ...ofFailed(daemon, rows),
    ...ofNobody(daemon, rows, waiting, sessions),
    ...ofRooms(daemon, rows),
    ...ofSleepers(daemon, rows, sessions),
    ...ofSnapshots(daemon, rows),
    ...ofCids(rows),
    ...ofMeter(rows),
    ...ofDaemon(daemon, guests, waiting),
    ...(await asTheApiSays(daemon, rows)),
  ];
}

function onTheirWay({ sandboxes, rooms }: Rows): string[] {
  const settled = new Set([...WITH_GUEST, "failed", "hibernated"]);
  return [
    ...sandboxes
      .filter(({ state }) => !settled.has(state))
      .map(({ sandbox_id, state }) => `sandbox ${sandbox_id} is still ${state}`),
    ...rooms
      .filter(({ state }) => state === "destroying")
      .map(({ room_uid }) => `room ${room_uid} is still destroying`),
  ];
}

/** Every running sandbox is metered, and nothing else is. */
function ofMeter({ sandboxes, metered }: Rows): string[] {
  const running = sandboxes.filter(({ state }) => state === "running").map(({ sandbox_id }) => sandbox_id);
  return [
    ...running.filter((id) => !metered.includes(id)).map((id) => `running sandbox ${id} is not metered`),
    ...metered.filter((id) => !running.includes(id)).map((id) => `${id} is metered and not running`),
  ];
}

/** One of each process, its sockets, its directory, its disk. */
function ofGuest(daemon: TestDaemon, row: SandboxFacts, sessions: readonly Session[]): string[] {
  const paths = pathsOf(daemon, row.sandbox_id);
  const own = sessions.filter(({ sandbox_id }) => sandbox_id === row.sandbox_id);
  const wrong = (["qemu", "virtiofsd", "vsock"] as const).flatMap((part) => {
    const count = own.filter((session) => session.part === part).length;
    return count === 1 ? [] : [`${row.state} sandbox ${row.sandbox_id} has ${count} times ${part} instead of once`];
  });
  const needed = [paths.qmp, paths.qmp_spare, paths.console, paths.vsock, paths.processes, paths.overlay];
  const missing = needed.filter((path) => !existsSync(path));
  return [...wrong, ...missing.map((path) => `${row.state} sandbox ${row.sandbox_id} lacks ${path}`)];
}

/** Machines that wait for a sandbox: whatever of the guests has no row. */
function waitingIn(daemon: TestDaemon, rows: Rows): string[] {
  const known = new Set(rows.sandboxes.map(({ sandbox_id }) => sandbox_id));
  const { guests, sandboxes } = makePathsOf(daemon);
  return [...new Set([...namesIn(guests), ...namesIn(sandboxes)])].filter((name) => !known.has(name));
}

function ofPool(daemon: TestDaemon, waiting: readonly string[], sessions: readonly Session[]): string[] {
  const size = Number(daemon.env.ROOMD_POOL_SIZE ?? 0);
  const broken = waiting.flatMap((sandboxId) => {
    const own = sessions.filter(({ sandbox_id }) => sandbox_id === sandboxId).map(({ part }) => part);
    const { directory, runtime, qmp } = pathsOf(daemon, sandboxId);
    return own.join() === "qemu" && [directory, runtime, qmp].every((path) => existsSync(path))
      ? []
      : [`${sandboxId} has no row and is no whole machine of the pool: ${own.join() || "no process"}`];
  });
  if (waiting.length === size) return broken;
  return [...broken, `${waiting.length} machines wait in the pool instead of ${size}: ${waiting.join(" ")}`];
}

function ofFailed(daemon: TestDaemon, { sandboxes }: Rows): string[] {
  return sandboxes
    .filter(({ state }) => state === "failed")
    .flatMap(({ sandbox_id }) => {
      const { directory, runtime } = pathsOf(daemon, sandbox_id);
      const kept = namesIn(directory).filter((name) => !LOGS.includes(name));
      return [
        ...kept.map((name) => `failed sandbox ${sandbox_id} still has ${name}`),
        ...(existsSync(runtime) ? [`failed sandbox ${sandbox_id} still has its sockets`] : []),
      ];
    });
}

function ofNobody(daemon: TestDaemon, rows: Rows, waiting: string[], sessions: readonly Session[]): string[] {
  const alive = new Set([
    ...waiting,
    ...rows.sandboxes.filter(({ state }) => state !== "failed").map(({ sandbox_id }) => sandbox_id),
  ]);
  const trials = join(daemon.dataDir, "trials");
  return [
    ...sessions
      .filter(({ sandbox_id }) => sandbox_id === null || !alive.has(sandbox_id))
      .map(({ leader, argv }) => `process ${leader} belongs to nobody: ${argv.join(" ").slice(0, 160)}`),
    ...zombiesOf(daemon).map((pid) => `process ${pid} has ended and is not reaped`),
    ...mountsOf(daemon).map((line) => `a mount belongs to nobody: ${line}`),
    ...namesIn(trials).map((name) => `${trials}/${name} belongs to nobody`),
  ];
}

function ofRooms(daemon: TestDaemon, { rooms, nameless }: Rows): string[] {
  const paths = makePathsOf(daemon);
  const live = rooms.filter(({ state }) => state !== "destroyed").map(({ room_uid }) => room_uid);
  const kept = rooms.filter(({ state, drive_until_at }) => state === "destroyed" && drive_until_at !== null);
  return [
    ...difference(namesIn(paths.rooms), live).map((name) => `${paths.rooms}/${name} belongs to no room`),
    ...nameless.map((event) => `audit records of ${event} lack their room's name`),
    ...live.filter((uid) => !existsSync(paths.drive(uid))).map((uid) => `room ${uid} has no drive`),
    ...difference(
      namesIn(paths.retired),
      kept.map(({ room_uid }) => room_uid),
    ).map((name) => `${paths.retired}/${name} is no drive that is kept`),
    ...live
      .flatMap((uid) => readdirSync(paths.room(uid), { recursive: true }).map(String))
      .filter((path) => /(^|\/)\.roomd-[0-9a-f]{32}$/.test(path))
      .map((path) => `a temporary file is left on a drive: ${path}`),
  ];
}

/** On disk whole, and nowhere else. */
function ofSleepers(daemon: TestDaemon, { sandboxes }: Rows, sessions: readonly Session[]): string[] {
  return sandboxes
    .filter(({ state }) => state === "hibernated")
    .flatMap(({ sandbox_id }) => {
      const { saved, runtime } = pathsOf(daemon, sandbox_id);
      const own = sessions.filter((session) => session.sandbox_id === sandbox_id);
      return [
        ...(existsSync(saved) ? [] : [`${sandbox_id} hibernates and nothing of it is saved`]),
        ...(existsSync(runtime) ? [`${sandbox_id} hibernates and has sockets`] : []),
        ...own.map(({ part }) => `${sandbox_id} hibernates and has a ${part}`),
      ];
    });
}

/** Of each there is a row and a directory. */
function ofSnapshots(daemon: TestDaemon, { rooms, snapshots }: Rows): string[] {
  const paths = makePathsOf(daemon);
  const there = rooms.flatMap(({ room_uid }) => namesIn(paths.snapshots(room_uid)));
  return [
    ...difference(there, snapshots).map((name) => `snapshot ${name} has no row`),
    ...difference(snapshots, there).map((name) => `snapshot ${name} is not on disk`),
  ];
}

function ofCids({ held_cids, sandboxes }: Rows): string[] {
  const expected = sandboxes.filter(({ state }) => WITH_GUEST.has(state)).map(({ guest_cid }) => guest_cid);
  return [
    ...difference(held_cids, expected).map((cid) => `CID ${cid} is held and no guest has it`),
    ...difference(expected, held_cids).map((cid) => `CID ${cid} is a guest's and not held`),
    ...(new Set(held_cids).size === held_cids.length ? [] : [`CIDs are held twice: ${held_cids.join(" ")}`]),
  ];
}

/** Nothing that the daemon has open belongs to a guest that is gone, or to a file that is. */
function ofDaemon(daemon: TestDaemon, guests: readonly SandboxFacts[], waiting: readonly string[]): string[] {
  const alive = new Set([...guests.map(({ sandbox_id }) => sandbox_id), ...waiting]);
  return descriptorsOf(daemon.pid)
    .filter((target) => target.includes(daemon.home))
    .filter((target) => {
      const sandboxId = /sbx_[0-9A-Z]{26}/.exec(target)?.[0];
      return target.endsWith(" (deleted)") || (sandboxId !== undefined && !alive.has(sandboxId));
    })
    .map((target) => `the daemon has open what is gone: ${target}`);
}

async function asTheApiSays(daemon: TestDaemon, rows: Rows): Promise<string[]> {
  const rooms = (await daemon.ok("GET", "/v1/rooms?limit=1000")).items as Json[];
  const live = rows.rooms.filter(({ state }) => state !== "destroyed");
  const shown: string[] = [];
  for (const { room_id } of rooms) {
    const { items } = await daemon.ok("GET", `/v1/rooms/${room_id}/sandboxes?limit=1000`);
    shown.push(...items.map((item: Json) => `${item.sandbox_id} ${item.state}`));
  }
  const kept = rows.sandboxes.map(({ sandbox_id, state }) => `${sandbox_id} ${state}`);
  const { capacity } = await daemon.ok("GET", "/health");
  const free = GUEST_CID_MAX - GUEST_CID_MIN + 1 - rows.held_cids.length;
  const verdict = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
  return [
    ...unlike(
      "rooms",
      rooms.map((room) => room.room_uid),
      live.map(({ room_uid }) => room_uid),
    ),
    ...unlike("sandboxes", shown, kept),
    ...(capacity.guest_cids_free === free ? [] : [`/health has ${capacity.guest_cids_free} CIDs free, not ${free}`]),
    ...(verdict.ok ? [] : [`the audit chain is broken: ${JSON.stringify(verdict)}`]),
  ];
}

function unlike(kind: string, shown: string[], kept: string[]): string[] {
  const [a, b] = [shown, kept].map((each) => each.toSorted().join(", "));
  return a === b ? [] : [`the API shows other ${kind} than there are: ${a} instead of ${b}`];
}

function difference<T>(from: readonly T[], those: readonly T[]): T[] {
  return from.filter((each) => !those.includes(each));
}

function makePathsOf(daemon: TestDaemon) {
  return makePaths({ data_dir: daemon.dataDir, runtime_dir: daemon.runtimeDir });
}

function pathsOf(daemon: TestDaemon, sandboxId: string): SandboxPaths {
  return makePathsOf(daemon).sandbox(sandboxId);
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
