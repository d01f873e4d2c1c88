/** A caller's expected digest of an existing file, while a guest writes to it. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { DriveRoom } from "../../../../../daemon/domain/drive/deps.ts";
import { requireDigest } from "../../../../../daemon/domain/drive/files/digest.ts";
import type { Drive } from "../../../../../daemon/domain/drive/verb.ts";
import { Beneath } from "../../../../../daemon/host/files/beneath.ts";
import { CHUNK_BYTES } from "../../../../../daemon/host/files/open-file.ts";
import { toRaw } from "../../../../../daemon/host/files/raw-path.ts";

const directory = mkdtempSync(join(tmpdir(), "roomd-digest-"));
afterAll(() => rmSync(directory, { recursive: true }));

test("a file written to during the comparison counts as changed, for any digest", async () => {
  const bytes = Buffer.alloc(2 * CHUNK_BYTES, "x");
  writeFileSync(join(directory, "f"), bytes);
  const expected = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  await using file = Beneath.open(directory).file(toRaw("f"), "read");
  const compare = async (turn: () => Promise<void>) => {
    const drive = { piecesOf: () => ({ next: turn, turn }) } as unknown as Drive;
    const room = { drive_limit_bytes: 1e9 } as DriveRoom;
    await requireDigest(drive, file, expected, { room, signal: new AbortController().signal });
  };
  await compare(async () => {});
  // Appended behind the end of the file at opening: the digest is the expected one anyway.
  await expect(compare(async () => appendFileSync(join(directory, "f"), "y"))).rejects.toThrow("changed while");
});
