/** A room's drive in a temporary directory, and calls on it as the pipeline makes them. */
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnkeptEffects } from "../../../../daemon/core/call/call-effects.ts";
import { type Done, type KeyCall, NO_TRANSFER, type Transfer } from "../../../../daemon/core/call/operation.ts";
import { untraced } from "../../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { type DriveRoom, makeDrive } from "../../../../daemon/domain/drive/index.ts";
import { Throttle } from "../../../../daemon/host/virtiofs/throttle.ts";
import type { Operation } from "../../../../shared/api/contract.ts";
import type { DriveEntry } from "../../../../shared/api/drive.ts";
import type { KeyId, OrgId } from "../../../../shared/ids.ts";

/** All fields that drive verbs may return. */
interface Body extends DriveEntry {
  guest_path: string;
  sha256: string;
  created: boolean;
  content: string | null;
  content_b64: string;
  offset: number;
  length: number;
  eof: boolean;
  state: string;
  items: DriveEntry[];
  next_cursor: string | null;
}

/** Of an answer that is written as it is taken. */
export const longBodyOf = async ({ stream }: Answer): Promise<Body> =>
  JSON.parse(await new Response(stream?.bytes).text());

export interface Answer extends Done<Operation> {
  body: Body;
  call: KeyCall;
}

export class RoomFixture implements Disposable {
  /** Contains the drive and, beside it, `outside`, which no call may ever reach. */
  readonly base: string;
  readonly directory: string;
  readonly outside: string;
  readonly room: DriveRoom;
  /** Returns the room as a call finds it. */
  found: () => DriveRoom = () => this.room;
  readonly drive;
  /** The plan's caps for the organization's drives. */
  caps = { soft_cap_bytes: Number.MAX_SAFE_INTEGER, hard_cap_bytes: Number.MAX_SAFE_INTEGER };
  /** The organization's ended rooms with a retained drive. */
  kept: Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">[] = [];
  /** Whether the room is one of those. */
  isEnded = false;
  readonly softExceeded: { used: number; cap: number }[] = [];
  /** Number of walks over the drive's files; each walk also requests the drive's shares. */
  measures = 0;
  /** The drive's usage as the kernel reports it. */
  kernelUse: () => { bytes: number; inodes: number } | null = () => null;

  constructor({ limitEntries = 1_000_000, ...options }: Partial<DriveRoom> & { limitEntries?: number } = {}) {
    this.base = mkdtempSync(join(tmpdir(), "roomd-drive-"));
    this.directory = join(this.base, "drive");
    this.outside = join(this.base, "outside");
    mkdirSync(this.directory);
    mkdirSync(this.outside);
    chmodSync(this.directory, 0o755);
    this.room = {
      room_id: "room",
      room_uid: "rom_1",
      org_id: "org_1" as OrgId,
      state: "active",
      drive_directory: this.directory,
      drive_limit_bytes: 10 * 1024 ** 3,
      ...options,
    };
    this.drive = makeDrive({
      findRoom: (_caller, roomId) => {
        if (roomId !== this.room.room_id) throw new ServiceError("room_not_found");
        return this.found();
      },
      limitEntries,
      roomsOf: () => [this.isEnded ? [] : [this.room]],
      keptOf: () => [this.kept],
      capsOf: () => this.caps,
      onSoftExceeded: (_, facts) => this.softExceeded.push(facts),
      sharesOf: () => {
        this.measures++;
        return [];
      },
      restraints: new Throttle(),
      kernelUse: () => this.kernelUse(),
      onUsed: () => {},
      giveUpSpace: () => false,
      log: makeLog("error", () => {}),
    });
  }

  /** Ends the room while calls are in progress; returns the directory in which its drive is retained. */
  end(): string {
    const drive_directory = join(this.outside, "retired");
    renameSync(this.directory, drive_directory);
    this.isEnded = true;
    this.drive.keep({ ...this.room, drive_directory });
    return drive_directory;
  }

  path(...names: string[]): string {
    return join(this.directory, ...names);
  }

  /** find, rules, run: as the road does it. */
  async call(
    name: string,
    input: Record<string, unknown>,
    transfer: Partial<Transfer> = {},
    signal = new AbortController().signal,
    more: Partial<KeyCall> = {},
  ): Promise<Answer> {
    const bound = this.drive.operations.find(({ operation }) => operation.name === name);
    if (!bound) throw new Error(`no operation ${name}`);
    const call: KeyCall = {
      request_id: "req_test",
      source: "rest",
      ip: null,
      signal,
      audit: { details: {} },
      work: new UnkeptEffects(),
      trace: untraced(),
      caller: {
        org_id: "org_1" as OrgId,
        key_id: "kid_1" as KeyId,
        name: "test",
        plan: "free",
        scopes: ["drive:read", "drive:write"],
        room_ids: null,
        agent_id: null,
        expires_at: null,
      },
      ...more,
    };
    const room = await bound.find(call, { room_id: "room" });
    const [bad] = await bound.rules(input, room, []);
    if (bad) throw new RuleBroken(bad.field, bad.code);
    const done = await bound.run(call, input, room, { ...NO_TRANSFER, ...transfer });
    return { ...done, body: done.body as Body, call };
  }

  /** The code that the call fails with; a failure that is no ServiceError is a bug and thrown on. */
  async codeOf(...call: Parameters<RoomFixture["call"]>): Promise<string> {
    try {
      await this.call(...call);
      return "done";
    } catch (error) {
      if (error instanceof RuleBroken || error instanceof ServiceError) return error.code;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true });
  }
}

class RuleBroken extends Error {
  readonly code: string;
  constructor(field: string, code: string) {
    super(`${field}: ${code}`);
    this.code = code;
  }
}

export async function bytesOf(answer: Answer): Promise<Buffer> {
  return Buffer.from(await new Response(answer.bytes?.stream).arrayBuffer());
}

export function streamOf(...chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
      controller.close();
    },
  });
}

export function sha256(bytes: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}
