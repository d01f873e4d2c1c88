/**
 * Owns the record of a guest, on disk for a daemon that comes after this one: which processes are its, by what host and agent know
 * each other, where its drive is plugged. It is the only place of these facts; beside it a guest in memory has children and sockets,
 * without which a later daemon does. It changes by the steps below and by nothing else:
 *
 *   change           what is there already                        what must wait for it to be written
 *   launched         QEMU, which nobody has met                   meeting it
 *   rehearsing       stand-ins of virtiofsd and vsock, unplugged  plugging both
 *   rehearsed        neither of them any more                     (nothing)
 *   served           virtiofsd and the vsock device, unplugged    plugging both
 *   linked           the agent has said who it is                 whoever uses the guest
 *   drive_replaced   another virtiofsd, unplugged                 plugging it: a port that may be used up is not tried again
 *   drive_mounted    the guest has mounted it                     (nothing: mounting it again does no harm)
 *   vsock_replaced   another vsock device, unplugged              plugging it
 *
 * What started and was not recorded, because the daemon was killed in between, is found by its names (remains.ts).
 */
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { BOOT_ID } from "../boot.ts";
import type { Acquaintance } from "../guest-link/connection.ts";
import type { ProcessRecord } from "../process.ts";
import type { SavedMachine } from "./plan.ts";
import type { DrivePlace } from "./serve-drive.ts";

/** From its template's snapshot, from its disk, or from what was saved of itself. */
export type LaunchMode = "snapshot" | "cold" | "saved";

export interface GuestRecord extends Acquaintance {
  /** Of the host, while they were started. */
  boot_id: string;
  sandbox_id: string;
  /** Null for a machine that is nobody's yet. */
  guest_cid: number | null;
  mode: LaunchMode;
  /** What QEMU was told to say that it is; absent in the records of older daemons. */
  uuid?: string;
  /** What it has to be restored on; absent in the records of older daemons, whose guests cannot be saved. */
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
    /** How many ports for the drive the guest has. */
    ports: number;
    known: Acquaintance;
  };
  linked: { known: Acquaintance };
  drive_replaced: { virtiofsd: ProcessRecord };
  drive_mounted: Record<never, never>;
  vsock_replaced: { vsock: ProcessRecord | null };
}

export type ChangeKind = keyof Changes;

/** Where the drive is in the records of daemons that knew one place only. */
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
    // One that is restored has mounted it before it was saved.
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

/** Shows that a change is on disk: what must wait for that asks for one. Only this file makes them. */
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

  /** Writes a change down. What could not be written is known here all the same: it is there, and has to be ended. */
  async advance<Kind extends ChangeKind>(kind: Kind, change: Changes[Kind]): Promise<Recorded<Kind>> {
    this.#now = advance(this.#now, kind, change);
    // Whole or not at all: a daemon that comes after a crash must be able to read it.
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#now), { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
    return new RecordedChange(kind, this.#now);
  }
}

/**
 * What is recorded of a guest; null when nothing is. Processes of another boot have ended with it: their numbers are others' now,
 * also where the directory of records outlives a boot, as in a container.
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
