/**
 * Owns the rehearsal of a machine that waits for its sandbox: it goes through a start once, so that what that runs is translated and in
 * memory.
 *
 *   go on → word on the console → set up ─▶ stand-ins → plug → dialled, mounted → unplug ─▶ stand still
 *                                      └─ taken already, or an agent of before ─────────┘
 *
 * The stand-ins of vsock and drive are this machine's alone: a CID that no sandbox has, and a drive with nothing in it, in which its root
 * can make nothing.
 */
import { randomInt } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DEVICES_WANTED_LINE, REHEARSE_LINE, REHEARSED_LINE } from "../../../shared/agent-protocol/messages.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { within } from "../../core/published.ts";
import { firstPortOf } from "../guest-link/transports/choose.ts";
import { ownedDirectory } from "../isolation/directories.ts";
import { endProcess, type KnownProcess } from "../process.ts";
import { plugStandIns } from "./plug.ts";
import { serveDrive } from "./serve-drive.ts";
import type { Launched } from "./start.ts";
import { vsockAddress } from "./steps.ts";

/** A guest that has not rehearsed by then is paused as it is. */
const DEADLINE_MS = 10_000;
/** Far from those that sandboxes are given, of which the host may have others. */
const CIDS = { from: 2 ** 24, to: 2 ** 31, tries: 8 } as const;
/** Nobody writes into what lies there. */
const READ_ONLY = 0o555;

type Parts = Launched["parts"];

/** Resolves once the machine stands still; `isTaken` says whether a sandbox waits for it. Throws when it is of no use. */
export async function rehearse(parts: Parts, isTaken: () => boolean): Promise<void> {
  const { machine } = parts;
  const wanted = Promise.withResolvers<"devices">();
  const rehearsed = Promise.withResolvers<"over">();
  let printed = "";
  const unlisten = machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes)).slice(-1024);
    if (printed.includes(DEVICES_WANTED_LINE)) wanted.resolve("devices");
    if (printed.includes(REHEARSED_LINE)) rehearsed.resolve("over");
  });
  try {
    await machine.resume();
    machine.typeLine(REHEARSE_LINE);
    const next = Promise.race([wanted.promise, rehearsed.promise]);
    const then = await within(next, DEADLINE_MS, "the rehearsal").catch(() => "late");
    if (then === "devices" && !isTaken()) await rehearseWithDevices(parts, rehearsed.promise);
    await machine.pause();
  } finally {
    unlisten();
  }
}

async function rehearseWithDevices(
  { plan, host: on, machine, record }: Parts,
  rehearsed: Promise<unknown>,
): Promise<void> {
  const { sandbox_id, paths, image } = plan;
  const transport = on.transportOf(on.transport.kind, firstPortOf(image.agent_generation));
  const guest_cid = transport.firstFree(Array.from({ length: CIDS.tries }, () => randomInt(CIDS.from, CIDS.to)));
  if (guest_cid === null) return;
  const host = { ...on, transport };
  const drive_directory = join(paths.rehearsal, "drive");
  const standIn = { sandbox_id, paths, guest_cid, drive_directory, drive_limit_bytes: 0 };
  const served: { plan: typeof standIn; host: typeof host; share?: KnownProcess } = { plan: standIn, host };
  const dialled = Promise.withResolvers<void>();
  await ownedDirectory(paths.rehearsal, 0, host.isolation.usersOf(sandbox_id)?.qemu.uid ?? 0);
  await mkdir(drive_directory, { mode: READ_ONLY });
  const serving = serveDrive(served);
  const opening = transport.open(vsockAddress(host, standIn), () => dialled.resolve());
  try {
    const [, endpoint] = await Promise.all([serving, opening]);
    const processes = { virtiofsd: served.share ?? null, vsock: endpoint.process };
    await plugStandIns(machine, paths, endpoint, await record.advance("rehearsing", processes));
    await faultPoint("pool.rehearsing");
    await within(Promise.all([dialled.promise, rehearsed]), DEADLINE_MS, "the rehearsal").catch(() => {});
    await machine.unplugDrive(0);
    await machine.unplugVsock();
  } finally {
    const [endpoint] = await Promise.all([opening.catch(() => null), serving.catch(() => {})]);
    await Promise.all([served.share && endProcess(served.share), endpoint?.close()]);
    // The sandbox's own virtiofsd is another user, who may not write over what this one has left.
    for (const left of [paths.rehearsal, paths.fs_sockets]) await rm(left, { recursive: true, force: true });
    await record.advance("rehearsed", {});
  }
}
