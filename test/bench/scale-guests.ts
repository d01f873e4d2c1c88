/**
 * Simulated guests of a daemon: their rooms, their rows as a previous daemon has left them, and the program that simulates them. The next
 * daemon adopts them with the same code as real ones.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openConnection } from "../../daemon/db/client.ts";
import { makeDatabase } from "../../daemon/db/transact.ts";
import { insertSandbox } from "../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../daemon/domain/sandboxes/table.ts";
import { GUEST_CID_MIN, newId, type OrgId, type RoomUid, type SandboxId } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";

/** Agents of a run. */
export const GUESTS_A_ROOM = 10;
/** Nice value of QEMU here: the daemon has priority over its guests. */
const GUEST_NICE = "5";
const START_MS = 120_000;
const STAMP = "2026-01-01T00:00:00.000Z";

export interface PlayedGuest {
  sandbox_id: SandboxId;
  guest_cid: number;
  room_id: string;
  agent_id: string;
}

export interface PlayedGuests {
  data_dir: string;
  runtime_dir: string;
  /** A pipe by name, which is open as long as the program runs. */
  line: string;
  guests: PlayedGuest[];
}

export const roomOf = (index: number) => `scale-${Math.floor(index / GUESTS_A_ROOM)}`;
export const agentOf = (index: number) => `agent-${index}`;

export class ScaleGuests {
  readonly #daemon: TestDaemon;
  readonly #programs: ChildProcess[] = [];
  #count = 0;

  constructor(daemon: TestDaemon) {
    this.#daemon = daemon;
  }

  /**
   * Stops the daemon, gives it `count` guests in total, and restarts it. Returns the time until it was ready, and until it had adopted all.
   */
  async become(count: number): Promise<{ readyMs: number; adoptedMs: number }> {
    const daemon = this.#daemon;
    const guests = Array.from({ length: count - this.#count }, (_, more): PlayedGuest => {
      const index = this.#count + more;
      const guest_cid = GUEST_CID_MIN + index;
      return { sandbox_id: newId("sbx"), guest_cid, room_id: roomOf(index), agent_id: agentOf(index) };
    });
    const uids = new Map<string, RoomUid>();
    for (const room of new Set(guests.map(({ room_id }) => room_id))) {
      const found = await daemon.api("GET", `/v1/rooms/${room}`);
      uids.set(room, (found.status === 200 ? found.body : await daemon.room(room)).room_uid);
    }
    const { key_id } = await daemon.ok("GET", "/v1/me");
    await daemon.end("SIGTERM");
    await this.#insert(guests, uids, key_id);
    if (guests.length > 0) await this.#play(guests);
    this.#count = count;
    return await this.restart();
  }

  /** Kills the daemon, if it runs, and starts it again. */
  async restart(): Promise<{ readyMs: number; adoptedMs: number }> {
    const daemon = this.#daemon;
    await daemon.end("SIGKILL");
    const before = taken(daemon);
    const startedAt = performance.now();
    await daemon.serve();
    const readyMs = performance.now() - startedAt;
    await until("all guests are taken over", () => taken(daemon) - before >= this.#count, START_MS);
    return { readyMs, adoptedMs: performance.now() - startedAt };
  }

  /** From now on they send `perSecond` messages per second in total to their rooms. */
  chat(perSecond: number): void {
    for (const program of this.#programs) program.stdin?.write(`${perSecond / this.#programs.length}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = this.#programs.map((program) => once(program, "exit"));
    for (const program of this.#programs) program.kill();
    await Promise.all(ended);
  }

  async #insert(guests: readonly PlayedGuest[], uids: ReadonlyMap<string, RoomUid>, key_id: string): Promise<void> {
    const daemon = this.#daemon;
    const connection = openConnection(join(daemon.dataDir, "roomd.db"));
    const database = makeDatabase(connection);
    await database.commit((queries) => {
      for (const { room_id, ...own } of guests) {
        const room_uid = uids.get(room_id);
        if (room_uid === undefined) throw new Error(`there is no room ${room_id}`);
        insertSandbox(queries, {
          ...USUAL_ROW,
          ...own,
          room_uid,
          org_id: daemon.orgId as OrgId,
          created_by_id: key_id,
        });
      }
    });
    await database.close();
  }

  async #play(guests: PlayedGuest[]): Promise<void> {
    const { home, dataDir: data_dir, runtimeDir: runtime_dir } = this.#daemon;
    const line = join(home, `line-${this.#programs.length}`);
    const file = join(home, `played-${this.#programs.length}.json`);
    if (spawnSync("mkfifo", [line]).status !== 0) throw new Error("there is no pipe for the guests' processes");
    writeFileSync(file, JSON.stringify({ data_dir, runtime_dir, line, guests } satisfies PlayedGuests));
    const argv = ["-n", GUEST_NICE, process.execPath, join(import.meta.dirname, "load/played-guests.ts"), file];
    const program = spawn("nice", argv, { stdio: ["pipe", "pipe", "inherit"] });
    this.#programs.push(program);
    const output = once(program.stdout, "data");
    const ended = once(program, "exit").then(([code]) => {
      throw new Error(`the program that plays guests ended with ${code}`);
    });
    ended.catch(() => {});
    await Promise.race([output, ended]);
  }
}

/** Number of guests that the daemon's log reports as adopted, over all its starts; builds that are compared may word it differently. */
function taken(daemon: TestDaemon): number {
  return daemon.log.split(/adopted a sandbox|sandbox taken over/).length - 1;
}

const USUAL_ROW: Omit<SandboxRow, keyof Omit<PlayedGuest, "room_id"> | "room_uid" | "org_id" | "created_by_id"> = {
  template_id: "default",
  template_digest: null,
  snapshot_id: null,
  cid_held: true,
  vcpu_count: 1,
  memory_mib: 512,
  disk_mib: 4096,
  state: "running",
  status_reason: "ready",
  status_message: "The sandbox is running.",
  last_transition_at: STAMP,
  created_at: STAMP,
  started_at: STAMP,
  ready_at: STAMP,
  stopped_at: null,
  exit_cause: null,
  exit_at: null,
  expires_at: null,
  max_duration_seconds: null,
  idle_timeout_seconds: null,
  on_idle: "destroy",
  wake_on: [],
  env: {},
  labels: {},
  egress_mode: "public",
  egress_allowlist: [],
  egress_revision: 1,
  guest_net: true,
  fabric_attached: true,
  drive_fault: null,
  created_by_type: "key",
  boot: {},
  start_mode: "snapshot",
  create_wall_ms: 1000,
};
