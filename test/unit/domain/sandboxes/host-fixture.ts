/** A host with several sandboxes under supervisors, one database in memory, and simulated guests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { Meter } from "../../../../daemon/domain/orgs/index.ts";
import { Supervisor, type SupervisorDeps } from "../../../../daemon/domain/sandboxes/lifecycle/supervisor.ts";
import { insertSandbox, undestroyed } from "../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { freeLeftovers } from "../../../../daemon/host/guest/leftovers.ts";
import { newRecord } from "../../../../daemon/host/guest/record.ts";
import { processOf } from "../../../../daemon/host/process.ts";
import { newId } from "../../../../shared/ids.ts";
import { FIELDS, insertRoom, PretendedGuest } from "./sandbox-fixture.ts";

interface Made {
  agent_id: string;
  state: SandboxRow["state"];
  status_reason?: string;
  memory_mib?: number;
  /** The process that serves its drive has ended so often. */
  drive_turn?: number;
  start?: SupervisorDeps["start"];
  restore?: SupervisorDeps["restore"];
  adopt?: SupervisorDeps["adopt"];
}

/** States with a guest at the beginning. */
const HAVE_GUEST: readonly SandboxRow["state"][] = ["running", "pausing", "paused"];

export async function makeHost(specs: readonly Made[]) {
  const home = mkdtempSync("/tmp/roomd-u-");
  const connection = openConnection(":memory:");
  migrate(connection);
  insertRoom(connection);
  const database = makeDatabase(connection, undefined, null);
  const paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") });
  const logged: string[] = [];
  const log = makeLog("info", (line) => logged.push(line));
  const events: string[] = [];
  const onEvent: SupervisorDeps["onEvent"] = (event, { agent_id }, { reason }, outcome = "error") =>
    void events.push(`${agent_id} ${event} ${reason} ${outcome}`);
  const all = new Map<string, Supervisor>();
  const guests = new Map<string, PretendedGuest>();
  const never = () => Promise.reject(new Error("not part of this test"));

  for (const [index, { agent_id, state, status_reason = "ready", memory_mib = 256, ...more }] of specs.entries()) {
    const sandbox_id = newId("sbx");
    const own = { sandbox_id, room_uid: "rom_1", org_id: "org_1", guest_cid: 9100 + index, start_mode: "snapshot" };
    const row = { ...FIELDS, ...own, agent_id, state, status_reason, memory_mib } as unknown as SandboxRow;
    await database.commit((queries) => insertSandbox(queries, row));
    const place = paths.sandbox(sandbox_id);
    const guest = new PretendedGuest();
    guest.savedTo = place.directory;
    guests.set(agent_id, guest);
    if (state === "hibernated") await guest.guest.save(new AbortController().signal);
    // Its QEMU is this process: as much memory as that has, it has.
    const record = { ...newRecord(sandbox_id, "snapshot"), machine: {}, qemu: processOf(process.pid) };
    mkdirSync(dirname(place.processes), { recursive: true });
    if (HAVE_GUEST.includes(state)) {
      const drive = { turn: more.drive_turn ?? 0, ports: 2, mounted: true };
      writeFileSync(place.processes, JSON.stringify({ ...record, virtiofsd: record.qemu, drive }));
    }
    const supervisor = new Supervisor(row, {
      ...{ database, log, onEvent, paths: place, meter: new Meter(database) },
      start: more.start ?? never,
      restore: more.restore ?? (async () => guest.guest),
      adopt: more.adopt ?? (async ({ state: as }) => ({ guest: guest.guest, paused: as.startsWith("pa") })),
      snapshotSaved: never,
      adoptSnapshot: never,
      endLeft: async () => void rmSync(place.runtime, { recursive: true, force: true }),
      takeCid: (_queries, { guest_cid }) => guest_cid,
      requireUnmoved: () => {},
      freeRemains: () => freeLeftovers({ ...place, processes: "" }),
      onState: () => {},
      onGone: () => {},
    });
    all.set(sandbox_id, supervisor);
    if (HAVE_GUEST.includes(state)) await supervisor.adopt();
  }
  const named = (agent_id: string) => {
    const found = [...all.values()].find(({ row }) => row.agent_id === agent_id);
    if (!found) throw new Error(`no sandbox ${agent_id}`);
    return found;
  };
  events.length = 0;
  /** In the order in which they were wanted: ids of one moment have none. */
  const rows = () => undestroyed(database.queries).sort((a, b) => a.guest_cid - b.guest_cid);
  return {
    ...{ database, paths, log, logged, events, onEvent, named },
    guest: (agent_id: string) => guests.get(agent_id) as PretendedGuest,
    limits: { concurrent_creates: 2 },
    supervisors: {
      get: (sandboxId: string) => all.get(sandboxId),
      use: async <T>(_id: string, work: () => Promise<T>) => await work(),
      growth: () => ({ overcommit_percent: 100, others_mib: 0, resident_mib: new Map<string, number>() }),
    },
    rows,
    /** The committed row of each, as `agent state reason`. */
    told: () => rows().map(({ agent_id, state, status_reason }) => `${agent_id} ${state} ${status_reason}`),
    [Symbol.dispose]: () => {
      rmSync(home, { recursive: true, force: true });
      connection.close();
    },
  };
}
