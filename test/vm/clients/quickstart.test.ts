/** packaging/quickstart on a host that has its packages and the template: twice with separate directories, and its refusals. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type Json, SHARED_TEMPLATES, whyNoGuests } from "../../harness/daemon.ts";
import { pageAt } from "../../harness/documents.ts";
import { freePort } from "../../harness/free-port.ts";
import { until } from "../../harness/guests.ts";

const QUICKSTART = "packaging/quickstart";
const STEPS = 8;
const reason = whyNoGuests();
if (reason !== null) console.log(`quickstart: left out, because ${reason}`);

interface Ran {
  status: number;
  stdout: string;
  stderr: string;
  seconds: number;
}

async function run(argv: string[], env: Record<string, string>): Promise<Ran> {
  const startedAt = performance.now();
  const child = Bun.spawn(argv, { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { status, stdout, stderr, seconds: (performance.now() - startedAt) / 1000 };
}

/** PATH without the `node` that the runtime of these tests adds, which is not Node. */
function pathOfPeople(): string {
  return (process.env.PATH ?? "")
    .split(":")
    .filter((directory) => !directory.includes("bun-node"))
    .join(":");
}

/** Processes of the daemon and of its guests: the directories are in the variables of the one, and the arguments of the others. */
function processesIn(home: string): number[] {
  const read = (pid: string, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => [read(pid, "environ"), read(pid, "cmdline")].some((text) => text.includes(home)))
    .map(Number);
}

/** With separate directories, which are removed afterwards with everything that was started on them. */
async function withHome(use: (env: Record<string, string>) => Promise<void>): Promise<void> {
  const home = mkdtempSync("/tmp/roomd-t-");
  try {
    for (const crossed of [home, SHARED_TEMPLATES, dirname(SHARED_TEMPLATES)]) chmodSync(crossed, 0o711);
    mkdirSync(join(home, "data"));
    symlinkSync(SHARED_TEMPLATES, join(home, "data", "templates"));
    const manifest = readFileSync(join(SHARED_TEMPLATES, "default", "current", "manifest.json"), "utf8");
    await use({
      PATH: pathOfPeople(),
      ROOMD_DATA_DIR: join(home, "data"),
      ROOMD_RUNTIME_DIR: join(home, "run"),
      ROOMD_HTTP_LISTEN: `127.0.0.1:${await freePort()}`,
      ROOMD_SSH_LISTEN: "",
      ROOMD_POOL_SIZE: "0",
      ROOMD_ACCELERATION: (JSON.parse(manifest) as Json).hardware.acceleration,
    });
  } finally {
    await until("all started processes have exited", () => {
      const left = processesIn(home);
      for (const pid of left) spawnSync("kill", ["-KILL", String(pid)]);
      return left.length === 0;
    });
    rmSync(home, { recursive: true, force: true });
  }
}

test.skipIf(reason !== null)(
  "ends with two export lines that lead to a working room; a second run finds everything in place",
  async () => {
    await withHome(async (env) => {
      const first = await run([QUICKSTART], env);
      expect([first.status, first.stderr]).toEqual([0, ""]);
      const exports = first.stdout.trimEnd().split("\n").slice(-2).join("\n");
      const [, url, key] = /^export ROOMD_URL=(\S+)\nexport ROOMD_API_KEY=(key-\S+)$/.exec(exports) ?? [];
      expect(url).toBe(`http://${env.ROOMD_HTTP_LISTEN}`);
      // The output shown on the page is its output on any host.
      const steps = (text: string) => text.match(/^\[\d\/\d\] .*$/gm);
      expect(steps(first.stdout)).toEqual(steps(pageAt("docs/quickstart.md").text));
      const headers = { authorization: `Bearer ${key}` };
      const sandboxes = async (): Promise<Json> => {
        const answer = await fetch(`${url}/v1/rooms/demo/sandboxes`, { headers });
        return await answer.json();
      };
      const made = await sandboxes();
      expect(made.items).toMatchObject([{ agent_id: "agent-1", state: "running", memory_mib: 512 }]);

      const second = await run([QUICKSTART], env);
      expect([second.status, second.stderr]).toEqual([0, ""]);
      expect(second.stdout.trimEnd().split("\n").slice(-2).join("\n")).toBe(exports);
      expect(await sandboxes()).toEqual(made);
      for (const { stdout } of [first, second]) expect(stdout.match(/\(\d+\.\d s\)$/gm)).toHaveLength(STEPS);
      expect((await fetch(`${url}/v1/rooms/demo?drive=delete`, { method: "DELETE", headers })).status).toBe(200);
      console.log(`quickstart: ${first.seconds.toFixed(1)} s, again ${second.seconds.toFixed(1)} s`);
    });
  },
);

test.skipIf(reason !== null)("reports a missing prerequisite in one sentence", async () => {
  const env = { PATH: process.env.PATH ?? "" };
  // It may read a checkout in any directory, and is not root.
  const capability = "+dac_override";
  const nobody = ["setpriv", "--reuid=65534", "--inh-caps", capability, "--ambient-caps", capability];
  for (const [argv, why] of [
    [[QUICKSTART, "--fast"], "unknown argument --fast"],
    [[...nobody, QUICKSTART], "run this as root"],
  ] as const) {
    const { status, stdout, stderr } = await run([...argv], env);
    expect([status, stdout, stderr.trim().split("\n")]).toEqual([
      1,
      "",
      [expect.stringContaining(`quickstart: ${why}`)],
    ]);
  }
});
