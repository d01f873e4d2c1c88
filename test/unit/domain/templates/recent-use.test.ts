/** What sandboxes were made of lately: for an hour, the latest first, and not many. */
import { expect, test } from "vitest";
import { RecentUse } from "../../../../daemon/domain/templates/recent-use.ts";

const one = (template_id: string, vcpu_count = 1) => ({ template_id, vcpu_count });

test("the latest is first, and each is there once for every number of processors", () => {
  const used = new RecentUse();
  for (const each of ["docker", "browser", "docker"]) used.note(one(each));
  used.note(one("docker", 2));
  expect(used.list()).toEqual([one("docker", 2), one("docker"), one("browser")]);
});

test("what was not used for an hour is not worth launching ahead", () => {
  let nowMs = 0;
  const used = new RecentUse(() => nowMs);
  used.note(one("docker"));
  nowMs = 1_800_000;
  used.note(one("browser"));
  nowMs = 3_600_001;
  expect(used.list()).toEqual([one("browser")]);
});

test("of many only a few are", () => {
  const used = new RecentUse();
  for (let n = 0; n < 100; n++) used.note(one(`t${n}`));
  expect(used.list().map(({ template_id }) => template_id)).toEqual(["t99", "t98", "t97", "t96"]);
});
