/** Recently used templates: for an hour, the latest first, and a bounded number; and the peak number of sandboxes within a minute. */
import { expect, test } from "vitest";
import { memoryAhead, RecentUse } from "../../../../daemon/domain/templates/recent-use.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

const one = (template_id: string, vcpu_count = 1, memory_mib = 512) => ({ template_id, vcpu_count, memory_mib });
const names = (used: RecentUse) => used.list().map(({ template_id, vcpu_count }) => `${template_id} ${vcpu_count}`);

test("the latest is first, and each is listed once per number of processors", () => {
  const used = new RecentUse();
  for (const each of ["docker", "browser", "docker"]) used.note(one(each));
  used.note(one("docker", 2));
  expect(names(used)).toEqual(["docker 2", "docker 1", "browser 1"]);
});

test("a template unused for an hour is not prepared ahead", () => {
  using clock = new MovedClock();
  const used = new RecentUse();
  used.note(one("docker"));
  clock.to(1_800_000);
  used.note(one("browser"));
  clock.to(3_600_001);
  expect(names(used)).toEqual(["browser 1"]);
});

test("the list is limited", () => {
  const used = new RecentUse();
  for (let n = 0; n < 100; n++) used.note(one(`t${n}`));
  expect(names(used)).toEqual(["t99 1", "t98 1", "t97 1", "t96 1"]);
});

test("the count is the peak within a minute, for an hour", () => {
  using clock = new MovedClock();
  const used = new RecentUse();
  const together = () => used.list().map((use) => use.together);
  for (const atMs of [0, 10_000, 59_000, 61_000, 300_000]) {
    clock.to(atMs);
    used.note(one("docker"));
  }
  expect(together()).toEqual([3]);
  clock.to(3_600_000 + 50_000);
  expect(together()).toEqual([2]);
  clock.to(3_600_000 + 100_000);
  expect(together()).toEqual([1]);
  clock.pass(3_600_000);
  expect(together()).toEqual([]);
  for (let n = 0; n < 1000; n++) used.note(one("docker"));
  expect(together()).toEqual([256]);
});

test("the minimum memory of each is retained for an hour", () => {
  using clock = new MovedClock();
  const used = new RecentUse();
  const least = () => used.list().map(({ least_memory_mib }) => least_memory_mib);
  for (const mib of [1024, 256, 512]) {
    used.note(one("docker", 1, mib));
    clock.pass(1_000_000);
  }
  expect(least()).toEqual([256]);
  clock.to(1_000_000 + 3_600_001);
  expect(least()).toEqual([512]);
});

test.each([
  [0, 256],
  [256, 256],
  [300, 256],
  [511, 256],
  [512, 512],
  [1536, 1024],
  [4095, 2048],
  [65_536, 8448],
])("if each had at least %i MiB, machines wait with %i", (least, expected) => {
  expect(memoryAhead(least, { base_memory_mib: 256, max_plugged_mib: 8192 })).toBe(expected);
});
