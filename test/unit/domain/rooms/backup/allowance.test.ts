/** Size of drives in a file that names one content many times: no more than the space that all of them have left. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { Allowance } from "../../../../../daemon/domain/rooms/backup/allowance.ts";
import { restoreUntrustedDrive } from "../../../../../daemon/domain/rooms/backup/untrusted-drive.ts";
import { contentIn, entriesIn, makeStoreDirectories } from "../../../../../daemon/host/files/store-places.ts";
import type { OrgId } from "../../../../../shared/ids.ts";

const CONTENT_BYTES = 64 * 1024;
const CAP = 1024 ** 2;
const space = {
  bytesLeft: async (_: object, written: number) => Math.max(0, CAP - written),
  requireBytes: async (_: object, { added }: { added: number }) => {
    if (added > CAP) throw new ServiceError("quota_exceeded");
  },
};
const allowanceOf = (bytes: number) => new Allowance(space, { org_id: "org_1" as OrgId }, { bytes, entries: 1000 });

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "allowance-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Makes a drive from a store in which this number of files have the same content; returns the drive's size. */
async function make(allowance: Allowance, name: string, files: number): Promise<number> {
  const [store, drive] = [join(home, `${name}-store`), join(home, name)];
  await makeStoreDirectories(store);
  mkdirSync(drive);
  writeFileSync(contentIn(store, 0), Buffer.alloc(CONTENT_BYTES, "roomd"));
  const all = Array.from({ length: files }, (_, at) => ["f", `n${at}`, 0o644, 0, 0, "0", 0, 0, 0]);
  const lines = [["drive", 1, 0o755, 0, 0, "0", 0], ...all, ["end"]];
  writeFileSync(entriesIn(store), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const links = join(home, `${name}-links`);
  const { bytes } = await allowance.within((bounds) =>
    restoreUntrustedDrive(new AbortController().signal, { store, drive, links, root: 0, bounds }),
  );
  await allowance.take(bytes);
  return bytes;
}
const takenBy = (name: string) =>
  readdirSync(join(home, name)).reduce((sum, each) => sum + statSync(join(home, name, each)).blocks * 512, 0);

test("each drive is limited to the remaining space, and a rejected one is not written beforehand", async () => {
  const allowance = allowanceOf(2 ** 40);
  expect(await make(allowance, "first", 8)).toBe(CAP / 2);
  await expect(make(allowance, "second", 500)).rejects.toMatchObject({ code: "quota_exceeded" });
  expect(takenBy("second")).toBeLessThanOrEqual(CAP / 2 + CONTENT_BYTES);
  // The remaining space is still available to them.
  expect(await make(allowance, "third", 8)).toBe(CAP / 2);
});

test("a drive above the limit of a drive is rejected as such", async () => {
  await expect(make(allowanceOf(CAP / 4), "large", 8)).rejects.toMatchObject({ code: "drive_full" });
  expect(takenBy("large")).toBeLessThanOrEqual(CAP / 4 + CONTENT_BYTES);
});
