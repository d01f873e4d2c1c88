/** Sandboxes in standby that a cut of their room has run: they rest again, unless a message came since they were paused. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import type { Connection } from "../../../../daemon/db/client.ts";
import { cutRoom } from "../../../../daemon/domain/sandboxes/branch/cut.ts";
import type { BranchParts } from "../../../../daemon/domain/sandboxes/branch/parts.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";
import { restingSandbox } from "./resting-fixture.ts";

test.each<[string, string, number]>([
  ["that was unread before it was paused", "2020-01-01T00:00:00.000Z", 0],
  ["that came since", "2099-01-01T00:00:00.000Z", 1],
])("a message %s, %s: wakes it %i times", async (_, created_at, times) => {
  using made = await restingSandbox({});
  await made.supervisor.standby();
  const { room_uid, agent_id, sandbox_id } = made.supervisor.row;
  const { database } = made.deps;
  const connection = { execute: (text: string) => void database.queries.run(sql.raw(text)) } as unknown as Connection;
  insertRow(connection, database, "messages", { room_uid, seq: 1, kind: "event", headers: "{}", created_at });
  insertRow(connection, database, "deliveries", { room_uid, seq: 1, agent_id, state: "queued" });
  const woken: string[] = [];
  const room = { room_uid, org_id: "org_1", room_id: "r" };
  const parts = {
    deps: { ...made.deps, currentRoom: () => ({ state: "active" }) },
    supervisors: {
      ...made.supervisors,
      holding: (_uid: string, work: () => Promise<unknown>) => work(),
      usesOf: () => 1,
    },
    waking: { message: (id: string) => woken.push(id) },
    places: {},
  } as unknown as BranchParts;
  // It fails: the previous state is restored anyway.
  const cut = cutRoom(parts, {} as never, room as never, {} as never);
  await expect(cut).rejects.toThrow();
  expect([made.supervisor.row.state, woken]).toEqual(["paused", Array.from({ length: times }, () => sandbox_id)]);
});
