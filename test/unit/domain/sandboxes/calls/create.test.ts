/** Effects of a refused create, and its sources of memory. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeStandalone } from "../../../../../daemon/cluster/standalone.ts";
import { type Caller, NO_TRANSFER, trialCall } from "../../../../../daemon/core/call/operation.ts";
import { Published } from "../../../../../daemon/core/concurrency/published.ts";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { makeCreate } from "../../../../../daemon/domain/sandboxes/calls/create.ts";
import { FreeCids } from "../../../../../daemon/domain/sandboxes/cids.ts";
import type { SandboxDeps } from "../../../../../daemon/domain/sandboxes/deps.ts";
import type { Supervisors } from "../../../../../daemon/domain/sandboxes/lifecycle/supervisors.ts";
import { insertSandbox, undestroyed } from "../../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../../daemon/domain/sandboxes/table.ts";
import type { Use } from "../../../../../daemon/domain/templates/recent-use.ts";
import { newId } from "../../../../../shared/ids.ts";
import { FIELDS, insertRoom } from "../sandbox-fixture.ts";

const CALLER = { org_id: "org_1", key_id: "kid_1", name: "mine", scopes: [], agent_id: null, room_ids: null };
const ROOM = { room_uid: "rom_1", room_id: "r", org_id: "org_1", state: "active" };
/** Noted uses of templates, with their numbers of processors. */
const MUCH_MIB = 1024 ** 3;
/** The CID of another program's virtual machine. */
const FOREIGN = 9551;

let connection: Connection;
let database: Database;
/** Of which templates a use was noted, and with how many processors. */
let used: string[];
/** Requests to the pool, and how often it can still release memory. */
let lacks: number[];
let gives: number;
let refusal: ServiceError | null;
let cids: FreeCids;
let overcommit_percent: number;

beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  insertRoom(connection);
  database = makeDatabase(connection);
  [used, lacks, gives, refusal, cids, overcommit_percent] = [[], [], 0, null, new FreeCids(), 0];
});
afterEach(() => database.close());

async function create(input: object = {}) {
  const template = {
    record: { template_id: "docker", digest: "sha256:0", min_memory_mib: 128, default_memory_mib: 512 },
    directory: "/nowhere",
    owner: null,
    disk_mib: 4096,
    manifest: { hardware: { base_memory_mib: 128, max_plugged_mib: 1024 }, append: "", generation: 1 },
  };
  const deps = {
    database,
    directory: makeStandalone(database, "host"),
    templates: { get: () => template },
    templateUsed: (use: Use) => used.push(`${use.template_id} ${use.vcpu_count}`),
    host: () => ({
      transport: { firstFree: (cids: Iterable<number>) => [...cids].find((cid) => cid !== FOREIGN) ?? null },
    }),
    limits: { memory_mib: MUCH_MIB },
    pool: {
      take: () => null,
      makeRoom: async (mib: number) => {
        lacks.push(mib);
        return gives-- > 0;
      },
    },
    currentRoom: () => ROOM,
    quota: {
      admit: () => {
        if (refusal) throw refusal;
        return [];
      },
    },
    credits: { admit: () => [] },
    driveMode: () => "open",
    egressDefault: "none",
    onState: () => {},
    portsOf: () => [],
  } as unknown as SandboxDeps;
  const supervisors = {
    cids,
    requireUnheld: () => {},
    add: (row: SandboxRow) => ({ row, published: new Published({ ...row, state: "running" }), start: async () => {} }),
    get: () => undefined,
    drop: () => {},
    growth: () => ({ overcommit_percent, others_mib: 0, resident_mib: new Map() }),
  } as unknown as Supervisors;
  const request = { room_id: "r", agent_id: "a", guest_cid: 9100, memory_mib: 128, template_id: "docker", ...input };
  const call = trialCall(CALLER as unknown as Caller);
  return await makeCreate(deps, supervisors).run(call, request, ROOM, NO_TRANSFER);
}

test("a template is noted as used once a sandbox of it exists, and not by a refused create", async () => {
  refusal = new ServiceError("quota_exceeded");
  await expect(create()).rejects.toMatchObject({ code: "quota_exceeded" });
  expect([used, lacks]).toEqual([[], []]);
  refusal = null;
  expect(await create()).toMatchObject({ outcome: "created" });
  expect(used).toEqual(["docker 1"]);
  await expect(create()).rejects.toThrow();
  expect(used).toEqual(["docker 1"]);
});

test("after a create with several processors, machines with as many are worth preparing ahead", async () => {
  await create({ vcpu_count: 2 });
  expect(used).toEqual(["docker 2"]);
});

test("if memory is lacking, waiting machines have to release it, as long as they do", async () => {
  gives = 2;
  await expect(create({ memory_mib: MUCH_MIB })).rejects.toMatchObject({ code: "insufficient_capacity" });
  expect(lacks).toHaveLength(3);
  for (const lack of lacks) expect(lack).toBeGreaterThan(MUCH_MIB / 2);
  expect([used, undestroyed(database.queries)]).toEqual([[], []]);
});

describe("without guest_cid and memory_mib", () => {
  const omitted = { guest_cid: undefined, memory_mib: undefined };

  test("concurrent creates get distinct CIDs, none of another program, and the template's memory", async () => {
    overcommit_percent = 10_000;
    await Promise.all(Array.from({ length: 60 }, (_, at) => create({ ...omitted, agent_id: `a-${at}` })));
    const rows = undestroyed(database.queries);
    expect(new Set(rows.map(({ guest_cid }) => guest_cid)).size).toBe(60);
    expect(rows.map(({ guest_cid }) => guest_cid)).not.toContain(FOREIGN);
    expect(rows.map(({ memory_mib }) => memory_mib)).toEqual(Array(60).fill(512));
  });

  test("a CID taken in the meantime is not assigned again", async () => {
    const write = (guest_cid: number, agent_id: string) =>
      insertSandbox(database.queries, {
        ...FIELDS,
        ...{ sandbox_id: newId("sbx"), room_uid: "rom_1", org_id: "org_1", agent_id, guest_cid, state: "running" },
      } as unknown as SandboxRow);
    const next = cids.next.bind(cids);
    let taken = 0;
    cids.next = (...given) => {
      const cid = next(...given);
      if (taken < 3) write(cid, `b-${taken++}`);
      return cid;
    };
    await create(omitted);
    expect(taken).toBe(3);
    expect(undestroyed(database.queries)).toHaveLength(4);
  });

  test("is refused if all CIDs are in use", async () => {
    cids.next = () => new FreeCids().next(database.queries, { firstFree: () => null });
    await expect(create(omitted)).rejects.toMatchObject({ code: "insufficient_capacity" });
  });
});
