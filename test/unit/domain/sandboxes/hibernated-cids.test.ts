/** Guest CIDs of hibernated sandboxes: they are free during hibernation, and a resume takes the same one or another. */
import { expect, test } from "vitest";
import { insertSandbox } from "../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import { GUEST_CID_MAX, GUEST_CID_MIN, newId } from "../../../../shared/ids.ts";
import { restingSandbox } from "./resting-fixture.ts";

/** A hibernated sandbox; `take` gives CIDs to other sandboxes. */
async function asleep() {
  const made = await restingSandbox({});
  const { supervisor } = made;
  const { database } = made.deps;
  await supervisor.hibernate();
  const take = (cids: readonly number[]) =>
    database.commit((queries) => {
      for (const guest_cid of cids) {
        const other = { ...supervisor.row, sandbox_id: newId("sbx"), agent_id: `a${guest_cid}` } as SandboxRow;
        insertSandbox(queries, { ...other, guest_cid, cid_held: true, state: "running" });
      }
    });
  return { made, supervisor, take };
}

test("its CID is free during hibernation, and its own again afterwards", async () => {
  const { made, supervisor } = await asleep();
  using _ = made;
  expect([supervisor.row.guest_cid, supervisor.row.cid_held, made.heldCids]).toEqual([9100, false, []]);
  await supervisor.resume();
  expect([supervisor.row.guest_cid, supervisor.row.cid_held, made.heldCids]).toEqual([9100, true, [9100]]);
});

test("it gets another CID if its own is taken, and its record has the new one", async () => {
  const { made, supervisor, take } = await asleep();
  using _ = made;
  await take([9100, 9101]);
  await supervisor.resume();
  expect(supervisor.row).toMatchObject({ guest_cid: 9102, cid_held: true, state: "running" });
});

test("it stays hibernated while all CIDs are taken", async () => {
  const { made, supervisor, take } = await asleep();
  using _ = made;
  await take(Array.from({ length: GUEST_CID_MAX - GUEST_CID_MIN + 1 }, (_each, index) => GUEST_CID_MIN + index));
  await expect(supervisor.resume()).rejects.toMatchObject({ code: "insufficient_capacity" });
  expect([supervisor.row.state, supervisor.row.cid_held]).toEqual(["hibernated", false]);
});

test("a sandbox that is destroyed or cannot be restored holds no CID", async () => {
  const { made, supervisor } = await asleep();
  using _ = made;
  made.given.before = () => Promise.reject(new Error("not this time"));
  await expect(supervisor.resume()).rejects.toMatchObject({ code: "guest_unreachable" });
  expect([supervisor.row.state, made.heldCids]).toEqual(["hibernated", []]);
  await supervisor.destroy("user_requested");
  expect([supervisor.row.state, made.heldCids]).toEqual(["destroyed", []]);
});
