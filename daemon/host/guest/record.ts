/**
 * The record of a guest, on disk for the next daemon: its processes, the credentials by which host and agent recognize each other, the port
 * of its drive. It is the only place of these facts; in addition a guest in memory has children and sockets, which a later daemon does
 * without. It changes by the steps below and by nothing else:
 *
 *     change           already there                                must wait for the write
 *     launched         QEMU, not connected to yet                   connecting to it
 *     rehearsing       stand-ins of virtiofsd and vsock, unplugged  plugging both
 *     rehearsed        neither of them any more                     (nothing)
 *     served           virtiofsd and the vsock device, unplugged    plugging both
 *     linked           the agent has identified itself              all users of the guest
 *     drive_replaced   another virtiofsd, unplugged                 plugging it: a port that may be used up is not retried
 *     drive_mounted    the guest has mounted it                     (nothing: mounting it again does no harm)
 *     vsock_replaced   another vsock device, unplugged              plugging it
 *
 * Processes that started and were not recorded, because the daemon was killed in between, are found by their names (leftovers.ts).
 */
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { BOOT_ID } from "../boot.ts";
import type { Acquaintance } from "../guest-link/connection.ts";
import type { ProcessRecord } from "../process.ts";
import type { SavedMachine } from "./plan.ts";
import type { DrivePlace } from "./serve-drive.ts";

/** From its template's snapshot, from its disk, or from its own saved state. */
export type LaunchMode = "snapshot" | "cold" | "saved";

export interface GuestRecord extends Acquaintance {
  /** Boot of the host in which the processes were started. */
  boot_id: string;
  sandbox_id: string;
  /** Null for an unassigned machine. */
  guest_cid: number | null;
  mode: LaunchMode;
  /** UUID that QEMU was configured to report; absent in the records of older daemons. */
  uuid?: string;
  /** Machine that a restore requires; absent in the records of older daemons: their guests cannot be saved. */
  machine?: SavedMachine;
  qemu: ProcessRecord | null;
  virtiofsd: ProcessRecord | null;
  vsock: ProcessRecord | null;
  drive: DrivePlace;
}

export interface Changes {
  launched: { uuid: string; qemu: ProcessRecord; machine: SavedMachine };
  rehearsing: { virtiofsd: ProcessRecord | null; vsock: ProcessRecord | null };
  rehearsed: Record<never, never>;
  served: {
    guest_cid: number;
    virtiofsd: ProcessRecord | null;
    vsock: ProcessRecord | null;
    /** Number of the guest's ports for the drive. */
    ports: number;
    known: Acquaintance;
  };
  linked: { known: Acquaintance };
  drive_replaced: { virtiofsd: ProcessRecord };
  drive_mounted: Record<never, never>;
  vsock_replaced: { vsock: ProcessRecord | null };
}

export type ChangeKind = keyof Changes;

/** Place of the drive in the records of daemons that supported only one. */
const FIRST_PLACE: DrivePlace = { turn: 0, ports: 2, mounted: true };
const NO_PLACE: DrivePlace = { turn: 0, ports: 0, mounted: false };

export function newRecord(sandbox_id: string, mode: LaunchMode): GuestRecord {
  return {
    boot_id: BOOT_ID,
    sandbox_id,
    guest_cid: null,
    mode,
    nonce: null,
    secret: null,
    qemu: null,
    virtiofsd: null,
    vsock: null,
    drive: NO_PLACE,
  };
}

const ADVANCE: { [Kind in ChangeKind]: (record: GuestRecord, change: Changes[Kind]) => Partial<GuestRecord> } = {
  launched: (_record, { uuid, qemu, machine }) => ({ uuid, qemu: only(qemu), machine }),
  rehearsing: (_record, { virtiofsd, vsock }) => ({ virtiofsd: only(virtiofsd), vsock: only(vsock) }),
  rehearsed: () => ({ virtiofsd: null, vsock: null }),
  served: ({ mode }, { guest_cid, virtiofsd, vsock, ports, known }) => ({
    ...known,
    guest_cid,
    virtiofsd: only(virtiofsd),
    vsock: only(vsock),
    // A restored guest mounted it before it was saved.
    drive: { turn: 0, ports, mounted: mode === "saved" },
  }),
  linked: ({ drive }, { known }) => ({ ...known, drive: { ...drive, mounted: true } }),
  drive_replaced: ({ drive }, { virtiofsd }) => ({
    virtiofsd: only(virtiofsd),
    drive: { ...drive, turn: drive.turn + 1, mounted: false },
  }),
  drive_mounted: ({ drive }) => ({ drive: { ...drive, mounted: true } }),
  vsock_replaced: (_record, { vsock }) => ({ vsock: only(vsock) }),
};

/** The record after a change. Pure. */
export function advance<Kind extends ChangeKind>(record: GuestRecord, kind: Kind, change: Changes[Kind]): GuestRecord {
  return { ...record, ...ADVANCE[kind](record, change) };
}

function only(process: ProcessRecord | null): ProcessRecord | null {
  return process && { pid: process.pid, start_ticks: process.start_ticks };
}

class RecordedChange<Kind extends ChangeKind> {
  readonly drive: DrivePlace;
  readonly #kind: Kind;

  constructor(kind: Kind, { drive }: GuestRecord) {
    this.#kind = kind;
    this.drive = drive;
  }

  get kind(): Kind {
    return this.#kind;
  }
}

/** Proof that a change is on disk: a parameter of each step that must wait for that. Only this file makes them. */
export type Recorded<Kind extends ChangeKind> = RecordedChange<Kind>;

/** The record of one guest, in memory and on disk. */
export class RecordFile {
  readonly #file: string;
  #now: GuestRecord;

  constructor(file: string, record: GuestRecord) {
    this.#file = file;
    this.#now = record;
  }

  get now(): GuestRecord {
    return this.#now;
  }

  /** Writes a change to disk. It is retained in memory even if the write fails: the process exists, and has to be ended. */
  async advance<Kind extends ChangeKind>(kind: Kind, change: Changes[Kind]): Promise<Recorded<Kind>> {
    this.#now = advance(this.#now, kind, change);
    // Atomic: the next daemon must be able to read the record after a crash.
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#now), { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
    return new RecordedChange(kind, this.#now);
  }
}

/**
 * Recorded state of a guest; null if absent. Processes of another boot have ended with it: their pids now belong to others, even if
 * the directory of records outlives a boot, as in a container.
 */
export function readRecord(file: string): GuestRecord | null {
  try {
    const recorded = JSON.parse(readFileSync(file, "utf8")) as Partial<GuestRecord> &
      Omit<GuestRecord, "boot_id" | "drive" | "secret">;
    const { boot_id = BOOT_ID, secret = null, drive } = recorded;
    const record: GuestRecord = { ...recorded, boot_id, secret, drive: drive ?? FIRST_PLACE };
    return boot_id === BOOT_ID ? record : { ...record, qemu: null, virtiofsd: null, vsock: null };
  } catch {
    return null;
  }
}
