/** The CLI client package as the daemon serves it: installed by npm from its URL and run by Node, its output compared with the binary's. */
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { realNode } from "../../harness/clients/real-terminal.ts";
import { TestDaemon } from "../../harness/daemon.ts";

let daemon: TestDaemon;
let secure: TestDaemon;
let directory: string;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  secure = await TestDaemon.start({ env: { ROOMD_TLS_MODE: "self-signed" } });
  directory = mkdtempSync(join(tmpdir(), "roomd-cli-"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true }));
  const install = ["install", "--no-audit", "--no-fund", "--silent", `${daemon.url}/sdk/roomd-cli.tgz`];
  execFileSync("npm", install, { cwd: directory, env: { ...process.env, PATH: PATH() } });
}, 120_000);
afterAll(async () => {
  await Promise.all([daemon.stop(), secure.stop()]);
  rmSync(directory, { recursive: true, force: true });
});

/** It runs on Node itself, not on the runtime of the tests. */
const PATH = () => `${dirname(realNode())}:${process.env.PATH}`;

async function roomd(args: string[], input = "", env: Record<string, string> = {}) {
  const child = spawn(join(directory, "node_modules/.bin/roomd"), args, {
    cwd: directory,
    env: { PATH: PATH(), HOME: directory, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey, ...env },
  });
  child.stdin.end(input);
  const out = { stdout: "", stderr: "" };
  child.stdout.on("data", (part) => {
    out.stdout += part;
  });
  child.stderr.on("data", (part) => {
    out.stderr += part;
  });
  const status = await new Promise<number>((done) => child.once("close", (code) => done(code ?? -1)));
  return { status, ...out };
}

const TIMEOUT = { timeout: 60_000 };

test("it has the daemon's version, and no host commands", TIMEOUT, async () => {
  expect((await roomd(["--version"])).stdout).toBe((await daemon.cli(["--version"])).stdout);
  const help = (await roomd(["--help"])).stdout;
  for (const word of ["exec", "shell", "drive", "template", "login"])
    expect(help).toMatch(new RegExp(`^  ${word} `, "m"));
  for (const word of ["serve", "setup", "backup", "restore", "uninstall"])
    expect(help).not.toMatch(new RegExp(`^  ${word} `, "m"));
  expect((await roomd(["template", "--help"])).stdout).not.toMatch(/^ {2}build /m);
  const size = readFileSync(join(directory, "node_modules/roomd-cli/roomd.js")).byteLength;
  expect(size).toBeLessThan(3 * 1024 * 1024);
});

/** Without how long ago something was, by which columns are as wide as they are. */
const ageless = ({ stdout, ...rest }: Awaited<ReturnType<typeof roomd>>) => ({
  ...rest,
  stdout: stdout.replaceAll(/ +/g, " ").replaceAll(/\bnow\b|\d+ m?s ago/g, "AGE"),
});

test("it prints the same as the binary, as text and as JSON", TIMEOUT, async () => {
  expect(await roomd(["room", "create", "node-cli", "--label", "of=测试"])).toMatchObject({ status: 0, stderr: "" });
  for (const line of [
    ["room", "list"],
    ["room", "get", "node-cli", "--json"],
    ["whoami"],
    ["template", "list", "--org"],
  ]) {
    expect([line, ageless(await roomd(line))]).toEqual([line, ageless(await daemon.cli(line))]);
  }
  const refused = await roomd(["room", "get", "nowhere", "--json"]);
  expect([refused.status, JSON.parse(refused.stderr).code]).toEqual([1, "room_not_found"]);
  expect((await roomd(["room", "gett"])).status).toBe(2);
});

test("npx runs it from the daemon's URL, in an empty directory and without an installation", TIMEOUT, async () => {
  const empty = mkdtempSync(join(tmpdir(), "roomd-npx-"));
  const env = {
    ...{ PATH: PATH(), HOME: empty, npm_config_cache: join(empty, "cache"), npm_config_update_notifier: "false" },
    ...{ ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey },
  };
  const npx = (...words: string[]) =>
    execFileSync("npx", ["--yes", `${daemon.url}/sdk/roomd-cli.tgz`, ...words], { cwd: empty, env, encoding: "utf8" });
  try {
    expect(npx("--help")).toMatch(/^ +room /m);
    expect(JSON.parse(npx("room", "list", "--json"))).toHaveProperty("items");
    expect(() => npx("room", "get", "nowhere")).toThrow(/room_not_found|nowhere/);
  } finally {
    rmSync(empty, { recursive: true, force: true });
  }
});

test("it copies files to and from the drive, by name and by pipe", TIMEOUT, async () => {
  const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => index % 251));
  writeFileSync(join(directory, "there"), bytes);
  expect((await roomd(["drive", "put", "there", "node-cli:/in/"])).status).toBe(0);
  expect((await roomd(["drive", "get", "node-cli:/in/there", "back"])).status).toBe(0);
  expect(Buffer.compare(readFileSync(join(directory, "back")), bytes)).toBe(0);
  expect((await roomd(["drive", "put", "-", "node-cli:/piped"], "piped in\n")).status).toBe(0);
  expect((await roomd(["drive", "get", "node-cli:/piped", "-"])).stdout).toBe("piped in\n");
  expect((await roomd(["drive", "write", "node-cli:/text"], "by standard input")).status).toBe(0);
  expect((await roomd(["drive", "read", "node-cli:/text"])).stdout).toBe("by standard input");
  expect(await roomd(["drive", "put", "nothing", "node-cli:/x"])).toMatchObject({
    ...{ status: 1, stderr: expect.stringContaining("nothing") },
  });
});

test("it copies a directory to and from the drive, with links and modes", TIMEOUT, async () => {
  mkdirSync(join(directory, "tree/deep"), { recursive: true });
  writeFileSync(join(directory, "tree/deep/run"), "ran\n", { mode: 0o755 });
  symlinkSync("run", join(directory, "tree/deep/link"));
  const sent = await roomd(["cp", "-r", "tree", "node-cli:/tree", "--json"]);
  expect(sent.status).toBe(0);
  expect(JSON.parse(sent.stdout)).toMatchObject({
    ...{ to: "node-cli:/tree", files: 1, directories: 2, left_out: [{ path: "deep/link", type: "symlink" }] },
  });
  expect((await roomd(["cp", "-r", "node-cli:/tree", "fetched"])).status).toBe(0);
  expect(statSync(join(directory, "fetched/deep/run")).mode & 0o700).toBe(0o700);
  expect(readFileSync(join(directory, "fetched/deep/run"), "utf8")).toBe("ran\n");
  expect((await roomd(["cp", "-", "node-cli:/tree/piped"], "piped in\n")).status).toBe(0);
  expect((await roomd(["cp", "node-cli:/tree/piped", "-"])).stdout).toBe("piped in\n");
  expect((await roomd(["cp", "tree", "node-cli:/other"])).stderr).toContain("With -r");
});

test("it trusts the self-signed certificate of a service, also for MCP", TIMEOUT, async () => {
  const cert = join(secure.dataDir, "tls/cert.pem");
  expect(existsSync(cert)).toBe(true);
  const env = { ROOMD_URL: secure.url.replace("127.0.0.1", "localhost"), ROOMD_API_KEY: secure.apiKey };
  expect((await roomd(["whoami"], "", env)).stderr).toContain("not trusted");
  const trusting = { ...env, ROOMD_CA_CERT: cert };
  expect((await roomd(["whoami", "--json"], "", trusting)).status).toBe(0);
  const messages = [
    {
      ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    },
  ];
  const child = spawn(join(directory, "node_modules/.bin/roomd"), ["mcp"], {
    env: { PATH: PATH(), HOME: directory, ...trusting },
  });
  const answer = new Promise<string>((resolve) => child.stdout.once("data", (part) => resolve(String(part))));
  for (const message of messages) child.stdin.write(`${JSON.stringify(message)}\n`);
  expect(JSON.parse(await answer)).toMatchObject({ id: 1, result: { serverInfo: {} } });
  child.stdin.end();
  expect(await new Promise((done) => child.once("close", done))).toBe(0);
});
