/** The unit of systemd is one that systemd takes, and shuts the daemon in as far as its work allows. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LAST_END_FILE } from "../../daemon/core/config/paths.ts";

const UNIT = "packaging/systemd/roomd.service";
/** systemd's own scale: 0.0 is shut in, 9.6 a service that says nothing. */
const MAX_EXPOSURE = 5.6;

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

/** Settings that systemd takes from a version on, and before that passes over with a word. */
const LATER = { RestartSteps: 254, RestartMaxDelaySec: 254 };

test.skipIf(missing !== null)("systemd accepts the unit, and all its settings except those of later versions", () => {
  const version = Number(
    /^systemd (\d+)/.exec(spawnSync("systemd-analyze", ["--version"], { encoding: "utf8" }).stdout)?.[1],
  );
  const { status, said } = analyze("verify");
  expect(status).toBe(0);
  const unknown = Object.entries(LATER).filter(([, since]) => version < since);
  const words = said.split("\n").filter((line) => line !== "");
  expect(words).toHaveLength(unknown.length);
  for (const [name] of unknown) {
    expect(said).toMatch(new RegExp(`Unknown key(?: name)? '${name}' in section`));
  }
});

test("the service is always restarted, with increasing delays, and has a watchdog", () => {
  const settings = new Map(
    readFileSync(UNIT, "utf8")
      .split("\n")
      .flatMap((line) => (/^[A-Za-z]+=/.test(line) ? [line.split(/=(.*)/s).slice(0, 2) as [string, string]] : [])),
  );
  expect(settings.get("StartLimitIntervalSec")).toBe("0");
  expect(settings.has("StartLimitBurst")).toBe(false);
  expect([settings.get("Restart"), settings.get("Type")]).toEqual(["on-failure", "notify"]);
  expect(Number(settings.get("RestartSteps"))).toBeGreaterThan(0);
  expect(Number(settings.get("RestartMaxDelaySec"))).toBeGreaterThan(Number(settings.get("RestartSec")));
  expect(Number(settings.get("WatchdogSec"))).toBeGreaterThan(0);
});

test("the daemon's exit reason is saved for the next start, as reported by systemd", () => {
  const line = /^ExecStopPost=\/bin\/sh -c '(.*)'$/m.exec(readFileSync(UNIT, "utf8"))?.[1] ?? "";
  const directory = mkdtempSync(join(tmpdir(), "roomd-unit-"));
  try {
    const env = { RUNTIME_DIRECTORY: directory, SERVICE_RESULT: "watchdog", EXIT_STATUS: "ABRT" };
    expect(spawnSync("/bin/sh", ["-c", line], { env }).status).toBe(0);
    expect(readFileSync(join(directory, LAST_END_FILE), "utf8")).toBe("watchdog ABRT\n");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.skipIf(missing !== null)("systemd rates the service no more exposed than necessary", () => {
  const { status, said } = analyze("security", "--offline=true", "--no-pager", `--threshold=${MAX_EXPOSURE * 10}`);
  expect(said).toMatch(/Overall exposure level for roomd\.service: \d/);
  expect([status, said.split("\n").at(-2)]).toEqual([0, said.split("\n").at(-2)]);
});

test("nothing is mounted over parts of /proc, which would deny virtiofsd a user namespace", () => {
  const lines = readFileSync(UNIT, "utf8").split("\n");
  const harmful = /^(ProtectKernelTunables|ProtectKernelLogs|ProtectHostname|ProtectProc|ProcSubset|PrivatePIDs)=/;
  expect(lines.filter((line) => harmful.test(line))).toEqual([]);
});
