/** One sandbox under its own supervisor, with a database in memory and a simulated guest. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Published } from "../../../../daemon/core/concurrency/published.ts";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import type { LogSync } from "../../../../daemon/db/log-sync.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { Meter } from "../../../../daemon/domain/orgs/index.ts";
import { cidAgain } from "../../../../daemon/domain/sandboxes/cids.ts";
import { Supervisor, type SupervisorDeps } from "../../../../daemon/domain/sandboxes/lifecycle/supervisor.ts";
import { heldCids, insertSandbox, undestroyed } from "../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { endLeft, freeLeftovers } from "../../../../daemon/host/guest/leftovers.ts";
import type { Guest } from "../../../../daemon/host/guest/start.ts";
import { newId } from "../../../../shared/ids.ts";

/** Answers every question with the right time. */
const PRETENDED_LINK = {
  open: () => ({ finished: Promise.resolve({ clock_ns: String(BigInt(Date.now()) * 1_000_000n) }), fail: () => {} }),
};

const MOMENT = "2026-01-01T00:00:00.000Z";

export class PretendedGuest {
  readonly died = Promise.withResolvers<string>();
  ends = 0;
  /** Commands to its QEMU, in order. */
  readonly told: string[] = [];
  /** Why its end fails; null when it does not. */
  stuck: string | null = null;
  /** Its sandbox's directory. */
  savedTo = "";

  get guest(): Guest {
    const guest = {
      exited: this.died.promise,
      start_mode: "snapshot",
      boot: { machine_ms: 1 },
      ending: () => null,
      health: new Published({ drive: null, vsock: null }),
      machine: { stalled: new Published(false), ending: () => null, pause: async () => {}, resume: async () => {} },
      connection: {
        state: new Published({ link: {}, failure: null, stages_ms: {} }),
        hold: async () => void this.told.push("hold"),
        release: () => void this.told.push("release"),
        link: async () => PRETENDED_LINK,
      },
      changeRun: async (change: (machine: Guest["machine"]) => Promise<void>) => await change(guest.machine as never),
      ensureVsock: async () => {},
      shortener: { begin: () => {}, end: async () => {} },
      save: async () => {
        this.told.push("save");
        pretendSaved(this.savedTo);
      },
      snapshot: async () => ({ paused_ms: 1, size_bytes: 1 }),
      leave: async () => void this.told.push("leave"),
      end: async () => {
        this.ends++;
        if (this.stuck !== null) throw new Error(this.stuck);
      },
    };
    return guest as unknown as Guest;
  }
}

function pretendSaved(directory: string): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "saved.json"), "{}");
}

export async function makeSandbox(
  state: SandboxRow["state"],
  deps: Partial<Pick<SupervisorDeps, "start" | "adopt" | "restore" | "onState">> = {},
  log: LogSync | null = null,
) {
  const home = mkdtempSync("/tmp/roomd-u-");
  const connection = openConnection(":memory:");
  migrate(connection);
  insertRoom(connection);
  const database = makeDatabase(connection, undefined, log);
  const row = {
    ...FIELDS,
    sandbox_id: newId("sbx"),
    room_uid: "rom_1",
    org_id: "org_1",
    state,
  } as unknown as SandboxRow;
  await database.commit((queries) => insertSandbox(queries, row));
  const events: string[] = [];
  const gone: string[] = [];
  const paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") }).sandbox(row.sandbox_id);
  const never = () => Promise.reject(new Error("not part of this test"));
  const supervisor = new Supervisor(row, {
    database,
    meter: new Meter(database),
    log: makeLog("error", () => {}),
    paths,
    start: deps.start ?? never,
    adopt: deps.adopt ?? never,
    restore: deps.restore ?? never,
    snapshotSaved: async () => ({ paused_ms: 0, size_bytes: 0 }),
    adoptSnapshot: async () => pretendSaved(paths.directory),
    endLeft: () => endLeft(paths),
    takeCid: (queries, current) => cidAgain(() => ({ firstFree: ([first = null]) => first }), queries, current),
    requireUnmoved: () => {},
    freeRemains: () => freeLeftovers(paths),
    onEvent: (event, _row, { reason }) => events.push(`${event} ${reason}`),
    onState: deps.onState ?? (() => {}),
    onGone: ({ sandbox_id }) => gone.push(sandbox_id),
  });
  return {
    supervisor,
    database,
    paths,
    events,
    gone,
    /** The committed row. */
    get committed(): SandboxRow | undefined {
      return undestroyed(database.queries)[0];
    },
    get heldCids(): number[] {
      return [...heldCids(database.queries)];
    },
    [Symbol.dispose]: () => {
      rmSync(home, { recursive: true, force: true });
      connection.close();
    },
  };
}

/** The organization org_1, and its room rom_1. */
export function insertRoom(connection: Connection): void {
  connection.execute(`INSERT INTO orgs (org_id, name, plan, created_at) VALUES ('org_1', 'o', 'free', '${MOMENT}')`);
  connection.execute(`INSERT INTO rooms (room_uid, room_id, org_id, host_id, state, status_reason, status_message,
    last_transition_at, labels, drive_limit_bytes, created_at, updated_at, created_by_type, created_by_id)
    VALUES ('rom_1', 'r', 'org_1', 'h', 'active', '', '', '${MOMENT}', '{}', 0, '${MOMENT}', '${MOMENT}', 'key', 'k')`);
}

export const FIELDS = {
  agent_id: "a",
  guest_cid: 9100,
  cid_held: true,
  template_id: "default",
  template_digest: null,
  vcpu_count: 1,
  memory_mib: 256,
  status_reason: "accepted",
  status_message: "",
  last_transition_at: MOMENT,
  exit_cause: null,
  drive_fault: null,
  exit_at: null,
  env: {},
  egress_mode: "none",
  egress_allowlist: [],
  egress_revision: 1,
  guest_net: true,
  disk_mib: 4096,
  fabric_attached: true,
  labels: {},
  idle_timeout_seconds: null,
  on_idle: "destroy",
  wake_on: [],
  snapshot_id: null,
  max_duration_seconds: null,
  created_at: MOMENT,
  started_at: null,
  ready_at: null,
  stopped_at: null,
  expires_at: null,
  create_wall_ms: null,
  boot: {},
  start_mode: null,
  created_by_type: "key",
  created_by_id: "k",
};
