/** Quota use of rooms with only hibernated sandboxes: their disks alone, and all of the room again once one of them runs. */
import { expect, test } from "vitest";
import { countedWith, findSandbox, orgSandboxes, updateSandbox } from "../../../../daemon/domain/sandboxes/store.ts";
import type { SandboxRow } from "../../../../daemon/domain/sandboxes/table.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { makeHost } from "./host-fixture.ts";

const ORG = "org_1" as OrgId;

async function host(...states: SandboxRow["state"][]) {
  const made = await makeHost(states.map((state, index) => ({ agent_id: `a${index}`, state })));
  const { queries } = made.database;
  return {
    ...made,
    counted: () => orgSandboxes(queries, ORG),
    with: (name: string, isNew = false) => {
      const { row } = made.named(name);
      return countedWith(queries, findSandbox(queries, row.room_uid, row.sandbox_id) ?? row, isNew);
    },
    become: (name: string, state: SandboxRow["state"], status_reason = "requested") =>
      made.database.commit((within) =>
        updateSandbox(within, made.named(name).row.sandbox_id, { state, status_reason }),
      ),
  };
}

test("a room with only hibernated sandboxes counts with their disks", async () => {
  using made = await host("hibernated", "hibernated", "destroyed", "failed");
  const { disk_gib } = made.counted();
  expect(made.counted()).toEqual({ sandboxes: 0, memory_mib: 0, disk_gib, hibernated_rooms: 1 });
  expect(disk_gib).toBeGreaterThan(0);
  expect(made.with("a0")).toEqual({ rooms: 1, sandboxes: 2, memory_mib: 256 });
  expect(made.with("a1", true)).toEqual({ rooms: 1, sandboxes: 2, memory_mib: 256 });
});

test("one running sandbox makes its whole room count", async () => {
  using made = await host("hibernated", "hibernated", "hibernated");
  await made.become("a1", "resuming");
  expect(made.counted()).toMatchObject({ sandboxes: 3, memory_mib: 256, hibernated_rooms: 0 });
  expect(made.with("a0")).toEqual({ rooms: 0, sandboxes: 0, memory_mib: 256 });
  expect(made.with("a0", true)).toEqual({ rooms: 0, sandboxes: 1, memory_mib: 256 });
});

test("a room without sandboxes counts when its first one is created", async () => {
  using made = await host("destroyed", "creating");
  expect(made.with("a1", true)).toEqual({ rooms: 0, sandboxes: 1, memory_mib: 256 });
  expect(made.counted()).toMatchObject({ sandboxes: 1, hibernated_rooms: 0 });
});

test.each(["room_moved", "host_shutdown"])(
  "sandboxes saved and resumed by the service, for %s, count as if they ran",
  async (reason) => {
    using made = await host("running", "hibernated");
    const before = made.counted();
    expect(before).toMatchObject({ sandboxes: 2, memory_mib: 256, hibernated_rooms: 0 });
    await made.become("a0", "hibernated", reason);
    expect(made.counted()).toEqual(before);
    expect(made.with("a0")).toEqual({ rooms: 0, sandboxes: 0, memory_mib: 0 });
    expect(made.with("a1")).toEqual({ rooms: 0, sandboxes: 0, memory_mib: 256 });
    // A sandbox that could not be resumed waits for a call, which checks the quota.
    await made.become("a0", "hibernated", "resume_failed");
    expect(made.counted()).toMatchObject({ sandboxes: 0, memory_mib: 0, hibernated_rooms: 1 });
  },
);
