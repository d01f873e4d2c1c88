import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { toRaw } from "../../../../daemon/host/files/raw-path.ts";
import { Temporary, temporaryName } from "../../../../daemon/host/files/temporary.ts";

const PIECE = Buffer.alloc(4 * 1024 ** 2, "roomd");

let base: string;
let root: Beneath;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "roomd-temporary-"));
  root = Beneath.open(base);
});
afterEach(() => {
  root[Symbol.dispose]();
  rmSync(base, { recursive: true });
});

/** A temporary file in `root` that syncs through `sync`. */
function watched(sync: (own: () => Promise<void>) => Promise<void>): Temporary {
  const make = root.newFile.bind(root);
  root.newFile = (name) => {
    const file = make(name);
    const own = file.sync.bind(file);
    return Object.assign(file, { sync: () => sync(own) });
  };
  return new Temporary(root, temporaryName());
}

it("flushes a large file while it arrives, and all of it at its end", async () => {
  let flushCount = 0;
  await using temporary = watched((own) => {
    flushCount++;
    return own();
  });
  for (let n = 0; n < 9; n++) await temporary.write(PIECE);
  expect(flushCount).toBe(2);
  await temporary.finish(0o644);
  expect(flushCount).toBe(3);
  await temporary.place(toRaw("large"), "refuse");
  expect(readFileSync(join(base, "large")).equals(Buffer.concat(Array(9).fill(PIECE)))).toBe(true);
});

it("fails to finish if an earlier flush failed", async () => {
  let flushCount = 0;
  await using temporary = watched((own) => (flushCount++ === 0 ? Promise.reject(new Error("EIO")) : own()));
  for (let n = 0; n < 5; n++) await temporary.write(PIECE);
  await expect(temporary.finish(0o644)).rejects.toThrow("EIO");
});
