/** Backup files of rooms in progress: few concurrently, and one state of all of them in memory at a time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths } from "../../../../../daemon/core/config/paths.ts";
import { RoomFiles } from "../../../../../daemon/domain/rooms/backup/files.ts";
import type { OrgId } from "../../../../../shared/ids.ts";

const ORG = "org_1" as OrgId;

let home: string;
let files: RoomFiles;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "taken-"));
  files = new RoomFiles({ paths: makePaths({ data_dir: home, runtime_dir: home }), giveUpSpace: () => false });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test("all organizations together have a few concurrent files", async () => {
  const held = await Promise.all(Array.from({ length: 8 }, (_, at) => files.begin(`org_${at % 4}` as OrgId)));
  const next = () => files.begin("org_9" as OrgId);
  await expect(next()).rejects.toMatchObject({ code: "invalid_state" });
  await held[0]?.remove();
  await held[0]?.remove();
  await next();
  await expect(next()).rejects.toMatchObject({ code: "invalid_state" });
});

test("work with a state in memory runs alone, for any owner, and a failure does not block the next", async () => {
  const [one, other] = await Promise.all([files.begin(ORG), files.begin("org_2" as OrgId)]);
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = one.alone(async () => {
    seen.push("first");
    await first.promise;
    seen.push("over");
    throw new Error("no");
  });
  const next = other.alone(async () => seen.push("next"));
  await Bun.sleep(5);
  first.resolve();
  await expect(failing).rejects.toThrow("no");
  await next;
  expect(seen).toEqual(["first", "over", "next"]);
});
