/** Which templates were used lately: for an hour, the latest first, and not many. */
import { expect, test } from "vitest";
import { RecentUse } from "../../../../daemon/domain/templates/recent-use.ts";

test("the latest is first, and each is there once", () => {
  const used = new RecentUse();
  for (const each of ["docker", "browser", "docker"]) used.note(each);
  expect(used.list()).toEqual(["docker", "browser"]);
});

test("what was not used for an hour is not worth launching ahead", () => {
  let nowMs = 0;
  const used = new RecentUse(() => nowMs);
  used.note("docker");
  nowMs = 1_800_000;
  used.note("browser");
  nowMs = 3_600_001;
  expect(used.list()).toEqual(["browser"]);
});

test("of many only a few are", () => {
  const used = new RecentUse();
  for (let n = 0; n < 100; n++) used.note(`t${n}`);
  expect(used.list()).toEqual(["t99", "t98", "t97", "t96"]);
});
