/** Commands that end with the process that follows them, `roomd run`, and the client as an npm package in Node, all with real guests. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RealTerminal, realNode } from "../../harness/clients/real-terminal.ts";
import { BINARY, type Json } from "../../harness/daemon.ts";
import { until, withGuests } from "../../harness/guests.ts";

withGuests("commands of the command line", {}, (guests) => {
  let directory: string;
  let client: string;
  beforeAll(async () => {
    const { daemon } = guests;
    await daemon.room("cli");
    await daemon.sandbox("cli", "w", guests.cid());
    directory = mkdtempSync(join(tmpdir(), "roomd-run-"));
    writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true }));
    const install = ["install", "--no-audit", "--no-fund", "--silent", `${daemon.url}/sdk/roomd-cli.tgz`];
    execFileSync("npm", install, { cwd: directory, env: { ...process.env, ...env() } });
    client = join(directory, "node_modules/.bin/roomd");
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const env = () => ({
    PATH: `${dirname(realNode())}:${process.env.PATH}`,
    HOME: directory,
    TERM: "xterm",
    ROOMD_URL: guests.daemon.url,
    ROOMD_API_KEY: guests.daemon.apiKey,
  });
  const runningIn = async (): Promise<string[]> => {
    const { items } = (await guests.daemon.ok("GET", "/v1/rooms/cli/sandboxes/w/executions")) as Json;
    return items.filter(({ state }: Json) => state === "running").map(({ argv }: Json) => argv.join(" "));
  };
  const rooms = async (): Promise<string[]> => {
    const { items } = (await guests.daemon.ok("GET", "/v1/rooms?state=active")) as Json;
    return items.map(({ room_id }: Json) => room_id);
  };

  test.each(["SIGTERM", "SIGHUP"] as const)("%s ends the command with roomd exec", async (signal) => {
    const child = spawn(BINARY, ["exec", "cli", "w", "sleep", "500"], { env: env() });
    await until("the command runs", async () => (await runningIn()).includes("sleep 500"));
    child.kill(signal);
    const status = await new Promise((done) => child.once("close", done));
    expect(status).toBe(signal === "SIGTERM" ? 143 : 129);
    expect(await runningIn()).toEqual([]);
  });

  test("a command ends when the reader of its output is gone", async () => {
    const line = `${BINARY} exec cli w -- yes | head -n 1`;
    expect(execFileSync("bash", ["-c", line], { env: env(), encoding: "utf8" })).toBe("y\n");
    await until("the command has ended", async () => (await runningIn()).length === 0);
  });

  test("roomd ps lists the running command", async () => {
    const started = await guests.daemon.ok("POST", "/v1/rooms/cli/sandboxes/w/executions", { command: "sleep 321" });
    expect((await guests.daemon.cli(["ps", "cli"])).stdout).toMatch(/cli +w +running .*sleep 321/);
    await guests.daemon.ok("DELETE", `/v1/rooms/cli/sandboxes/w/executions/${started.exec_id}`);
  });

  test("roomd run uses its own sandbox, and leaves nothing", async () => {
    const before = await rooms();
    const done = await guests.daemon.cli(["run", "sh", "-c", "cat; exit 3"], "through stdin\n");
    expect(done).toMatchObject({ status: 3, stdout: "through stdin\n" });
    expect(await rooms()).toEqual(before);
    const missing = await guests.daemon.cli(["run", "--", "echo a; ls"]);
    expect([missing.status, missing.stderr]).toEqual([127, expect.stringContaining("sh -c 'echo a; ls'")]);
    expect((await guests.daemon.cli(["run", "--template", "nowhere", "ls"])).status).toBe(125);
    expect(await rooms()).toEqual(before);
  });

  test("roomd run leaves nothing when interrupted", async () => {
    const before = await rooms();
    const child = spawn(BINARY, ["run", "sleep", "500"], { env: env() });
    await until("the command's room exists", async () => (await rooms()).length > before.length);
    child.kill("SIGTERM");
    expect(await new Promise((done) => child.once("close", done))).toBe(143);
    await until("the command's room is destroyed", async () => (await rooms()).length === before.length);
  });

  test("the npm package runs commands like the binary", async () => {
    const run = (args: string[], input = "") =>
      execFileSync(client, args, { env: env(), encoding: "utf8", input, cwd: directory });
    expect(run(["exec", "cli", "w", "sh", "-c", "cat; echo $A", "x"], "in\n")).toBe("in\n\n");
    expect(run(["exec", "cli", "w", "--env", "A=2", "sh", "-c", "echo $A"])).toBe("2\n");
    expect(JSON.parse(run(["exec", "cli", "w", "--json", "--", "echo", "4"]))).toMatchObject({ stdout: "4\n" });
    expect(() => run(["exec", "cli", "w", "sh", "-c", "exit 7"])).toThrow(expect.objectContaining({ status: 7 }));
  });

  test("the npm package opens a terminal: raw keys, size, ctrl-c, exit status", async () => {
    await using terminal = new RealTerminal([client, "shell", "cli", "w"], env(), { cols: 91, rows: 33 });
    await terminal.shows(/[#$] $/);
    terminal.type("stty size\r");
    await terminal.shows("33 91");
    terminal.type("sleep 500\r");
    await until("sleep runs", async () => (await guests.daemon.sh("cli", "w", "pgrep -c sleep || true")) !== "0");
    const mark = terminal.mark;
    terminal.type("\u0003");
    await terminal.shows(/[#$] $/, mark);
    terminal.resize(20, 70);
    terminal.type("stty size; exit 5\r");
    await terminal.shows("20 70");
    expect(await terminal.ended).toMatchObject({ exit_code: 5 });
  });

  test("roomd exec -it opens a terminal", async () => {
    await using terminal = new RealTerminal([BINARY, "exec", "-it", "cli", "w", "sh", "-c", "tty; exit 6"], env());
    await terminal.shows("/dev/pts/");
    expect(await terminal.ended).toMatchObject({ exit_code: 6 });
  });
});
