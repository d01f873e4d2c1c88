/** Pages of rooms of several hosts, and the longest turn of the event loop while they are merged. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Host } from "../../../../daemon/cluster/directory.ts";
import { orgPlacementsOn, prepareOwnerLookup } from "../../../../daemon/cluster/placements.ts";
import { bodyOf, type Caller, type Done } from "../../../../daemon/core/call/operation.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import type { PipelineRequest } from "../../../../daemon/edge/pipeline/pipeline.ts";
import { Gather, type GatherDeps } from "../../../../daemon/edge/scatter-gather/gather.ts";
import { gathered } from "../../../../daemon/edge/scatter-gather/rules.ts";
import { roomList } from "../../../../shared/api/rooms.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";

const ROOMS = 20_000;
const PAGE = 1_000;
const MAX_MS = 10;
const ORG = "org_1" as OrgId;
const AT = "2026-01-01T00:00:00.000Z";
const HOSTS = ["a", "b", "c", "d"];

let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  // Of each four rooms one is on each host; those of `d` alone are known from the directory.
  connection.execute(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${4 * ROOMS - 1})
    INSERT INTO placements (room_uid, org_id, room_id, labels, created_at, host_id, epoch)
      SELECT printf('rom_%06d', i), '${ORG}', 'room-' || i, '{"team":"red"}', '${AT}', substr('abcd', i % 4 + 1, 1), 1 FROM n`);
});
afterEach(() => connection.close());

const uid = (n: number) => `rom_${String(n).padStart(6, "0")}`;
const roomsOf = (at: number) =>
  Array.from({ length: PAGE + 1 }, (_, n) => ({
    room_uid: uid(4 * n + at),
    room_id: `room-${4 * n + at}`,
    org_id: ORG,
  }));

function gather(silent: readonly string[], parts: Record<string, object[]>) {
  const hosts = HOSTS.slice(1).map((host_id) => ({ host_id, joined_at: AT }) as Host);
  const owner = prepareOwnerLookup(connection.queries);
  const directory = {
    others: () => hosts,
    host: () => null,
    owner,
    placedOn: (org: OrgId, host: string) => orgPlacementsOn(connection.queries, org, host),
    onChange: () => {},
  };
  const deps = { rules: gathered, own: "a", directory } as unknown as GatherDeps;
  const pageOf = (host: string) => ({ org_id: ORG, items: parts[host] ?? [], next_cursor: "more" });
  const ask = async ({ host_id }: Host) =>
    silent.includes(host_id)
      ? { status: 503, body: null }
      : { status: 200, body: JSON.parse(JSON.stringify(pageOf(host_id))) };
  const request = { ask, transfer: { ndjson: false } } as unknown as PipelineRequest;
  const caller = { org_id: ORG, room_ids: null } as unknown as Caller;
  const merge = new Gather(deps).of(roomList, caller, request);
  const own = async () => ({ outcome: "ok", body: pageOf("a") });
  return async (input: object) =>
    bodyOf((await merge?.({ limit: PAGE, ...input }, own)) as unknown as Done<typeof roomList>);
}

test("a page of 1,000 rooms has those of a silent host with 20,000, in short turns", async () => {
  const list = gather(["d"], { a: roomsOf(0), b: roomsOf(1), c: roomsOf(2) });
  // Compiled before it is measured.
  await list({});
  let page: Awaited<ReturnType<typeof list>>;
  const longest = await longestTurn(async () => {
    page = await list({});
  });
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(page?.items.map(({ room_uid }) => room_uid)).toEqual(Array.from({ length: PAGE }, (_, n) => uid(n)));
  expect(page?.items.map(({ host }) => host).filter((host) => host === "d")).toHaveLength(PAGE / 4);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

test("a page has the newest rooms of a silent host first, with a label", async () => {
  const list = gather(["b", "c", "d"], {});
  const page = await list({ order: "desc", label: "team:red", limit: 4 });
  expect(page?.items.map(({ room_uid, host }) => [room_uid, host])).toEqual([
    [uid(4 * ROOMS - 1), "d"],
    [uid(4 * ROOMS - 2), "c"],
    [uid(4 * ROOMS - 3), "b"],
    [uid(4 * ROOMS - 5), "d"],
  ]);
  expect((await list({ label: "team:blue" }))?.items).toEqual([]);
});

test("a room with rows on two hosts has the record of the host of its placement", async () => {
  const twice = { room_uid: uid(1), room_id: "room-1", org_id: ORG };
  const list = gather(["d"], {
    a: [{ ...twice, host: "a" }],
    b: [{ ...twice, host: "b" }],
    c: [{ ...twice, host: "c" }],
  });
  const page = await list({});
  expect(page?.items.filter(({ room_uid }) => room_uid === uid(1)).map(({ host }) => host)).toEqual(["b"]);
});
