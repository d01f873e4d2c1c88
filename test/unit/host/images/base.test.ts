/** A sandbox's template files are accessible to the users of its processes, whatever the service's umask is. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { baseIn, linkBase } from "../../../../daemon/host/images/base.ts";

test("its directory is accessible to others even if the service's umask denies it, as its unit does", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-base-"));
  const before = process.umask(0o077);
  try {
    mkdirSync(join(home, "template"));
    const file = join(home, "template", "file");
    writeFileSync(file, "template");
    const own = join(home, "sandbox", "base");
    // Again is nothing.
    for (let turn = 0; turn < 2; turn++) {
      await linkBase({ kernel: file, initramfs: file, root: file, disk: null, empty: file }, own);
    }
    expect(statSync(own).mode & 0o7777).toBe(0o711);
    expect(readFileSync(baseIn(own).root, "utf8")).toBe("template");
  } finally {
    process.umask(before);
    rmSync(home, { recursive: true, force: true });
  }
});
