/** Directories that guests' processes cross, created if absent. */
import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { crossedDirectory } from "../../../../daemon/host/isolation/directories.ts";

test("created parent directories are accessible as well; existing ones are unchanged", () => {
  const there = mkdtempSync(join(tmpdir(), "crossed-"));
  chmodSync(there, 0o750);
  try {
    crossedDirectory(join(there, "above/data/rooms"));
    const modes = ["", "above", "above/data", "above/data/rooms"].map(
      (path) => statSync(join(there, path)).mode & 0o777,
    );
    expect(modes).toEqual([0o750, 0o711, 0o711, 0o711]);
  } finally {
    rmSync(there, { recursive: true });
  }
});
