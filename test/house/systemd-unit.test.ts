/** The unit of systemd is one that systemd takes, and shuts the daemon in as far as its work allows. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const UNIT = "packaging/systemd/roomd.service";
/** systemd's own scale: 0.0 is shut in, 9.6 a service that says nothing. */
const MOST_EXPOSURE = 5.6;

const missing = Bun.which("systemd-analyze") === null ? "there is no systemd-analyze" : null;
if (missing) console.log(`${UNIT}: not checked by systemd, because ${missing}`);

/** Runs systemd-analyze on the unit, with a program that is there instead of roomd's. */
function analyze(...args: string[]) {
  const directory = mkdtempSync(join(tmpdir(), "roomd-unit-"));
  try {
    const path = join(directory, "roomd.service");
    writeFileSync(path, readFileSync(UNIT, "utf8").replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"));
    const { status, stdout, stderr } = spawnSync("systemd-analyze", [...args, path], {
      encoding: "utf8",
      timeout: 60_000,
    });
    return { status, said: stdout + stderr };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test.skipIf(missing !== null)("systemd takes the unit, and knows all of it", () => {
  expect(analyze("verify")).toEqual({ status: 0, said: "" });
});

test.skipIf(missing !== null)("systemd finds the service no more exposed than it must be", () => {
  const { status, said } = analyze("security", "--offline=true", "--no-pager", `--threshold=${MOST_EXPOSURE * 10}`);
  expect(said).toMatch(/Overall exposure level for roomd\.service: \d/);
  expect([status, said.split("\n").at(-2)]).toEqual([0, said.split("\n").at(-2)]);
});

test("nothing is mounted over parts of /proc, or virtiofsd gets no user namespace", () => {
  const lines = readFileSync(UNIT, "utf8").split("\n");
  const harmful = /^(ProtectKernelTunables|ProtectKernelLogs|ProtectHostname|ProtectProc|ProcSubset|PrivatePIDs)=/;
  expect(lines.filter((line) => harmful.test(line))).toEqual([]);
});
