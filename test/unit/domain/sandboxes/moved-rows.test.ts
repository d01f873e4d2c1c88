/** Rows that another host sends with a room have to belong to that room. */
import { expect, test } from "vitest";
import type { MovedSandboxes } from "../../../../daemon/domain/sandboxes/index.ts";
import { putSandboxes } from "../../../../daemon/domain/sandboxes/move/rows.ts";

const WHOSE = { room_uid: "ru_one", org_id: "org_one" };
const NONE_GIVEN_UP = { givenUp: new Set<string>() };
const NONE = { ended: { columns: [], rows: [] }, carried: [], snapshots: [], ports: [] };
const carried = { ...WHOSE, sandbox_id: "sbx_one" };

/** They are refused before any query to the database. */
const put = (moved: object) => () =>
  putSandboxes({} as never, WHOSE as never, { ...NONE, ...moved } as unknown as MovedSandboxes, NONE_GIVEN_UP);

test.each([
  ["a sandbox of another room", { carried: [{ ...carried, room_uid: "ru_two" }] }],
  ["a sandbox of another organization", { carried: [{ ...carried, org_id: "org_two" }] }],
  ["a snapshot of another room", { snapshots: [{ ...WHOSE, room_uid: "ru_two" }] }],
  ["a port of another room", { carried: [carried], ports: [{ ...carried, room_uid: "ru_two" }] }],
  ["a port of a sandbox that did not come", { carried: [carried], ports: [{ ...carried, sandbox_id: "sbx_two" }] }],
])("%s is rejected", (_, moved) => {
  expect(put(moved)).toThrow(expect.objectContaining({ code: "invalid_state" }));
});
