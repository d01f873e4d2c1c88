/** Thousands of deleted files that a share holds open, and the longest turn of the event loop while they are measured. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loopTime, Pieces } from "../../../daemon/core/loop/index.ts";
import { measureTree } from "../../../daemon/domain/drive/quota/measure.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

/** Below the usual limit of open files of a process. */
const FILES = 19_000;
const BLOCK_BYTES = 4096;
/** Pieces are of 2 ms; in one turn the names alone take 25 to 200. */
const MAX_MS = 10;

const HOLDER = `
  const { openSync, unlinkSync, writeSync } = require("node:fs");
  for (let n = 0; n < ${FILES}; n++) {
    writeSync(openSync("f", "w+"), Buffer.alloc(${BLOCK_BYTES}));
    unlinkSync("f");
  }
  console.log("held");
  setInterval(() => {}, 60_000);`;

test(`${FILES} open deleted files are measured in short turns`, async () => {
  const drive = mkdtempSync(join(tmpdir(), "roomd-drive-"));
  const holder = Bun.spawn([process.execPath, "-e", HOLDER], { cwd: drive, stdout: "pipe", stderr: "inherit" });
  try {
    await holder.stdout.getReader().read();
    const stat = readFileSync(`/proc/${holder.pid}/stat`, "utf8");
    const share = { pid: holder.pid, start_ticks: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "" };
    const measure = () =>
      measureTree(drive, { shares: [share], pieces: new Pieces(loopTime, "host", "drive.measure") });
    // Compiled before it is measured.
    await measure();
    let used = 0;
    const longest = await longestTurn(async () => {
      used = (await measure()).used_bytes;
    });
    console.log(`longest turn: ${longest.toFixed(1)} ms`);
    expect(used).toBeGreaterThanOrEqual(FILES * BLOCK_BYTES);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
    rmSync(drive, { recursive: true });
  }
});
