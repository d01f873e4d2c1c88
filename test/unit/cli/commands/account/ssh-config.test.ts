/**
 * `roomd ssh-config` and `roomd code` against a stand-in: the files they write, as OpenSSH parses them, and a service that puts more than
 * names into its replies.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run, type Seen, scratch, standIn } from "../../cli-fixture.ts";

const HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkGm4mCqm1hE4s0Zt0PvGJr7ywE0mQyY5U4l1oHZb3c";
const GATEWAY = { address: "192.0.2.7:2222", host_key: HOST_KEY, fingerprint: "SHA256:R0CuY0ewFywBJU" };
const LINE = /^Include "(.*)"$/m;

const sandbox = (agent_id: string, more: object = {}) => ({
  ...{ room_id: "build-42", agent_id, state: "running", memory_mib: 2048 },
  ...{ egress: { mode: "public", allowlist: [], revision: 1 } },
  ...more,
});

function serving(items: object[], ssh: object | null = GATEWAY, keys: object[] = [{}]) {
  const list = (found: object[]) => Response.json({ items: found, next_cursor: null });
  return standIn(({ path, method }: Seen) => {
    if (path === "/v1/config") return Response.json({ ssh });
    if (path.endsWith("/ssh-keys")) return list(keys);
    if (method === "POST") return Response.json({ ...items[0], state: "running" });
    return /sandboxes\/[^/?]+$/.test(path) ? Response.json(items[0]) : list(items);
  });
}

/** OpenSSH's options for a host with this configuration, by name. */
function parsed(config: string, host: string): Record<string, string> {
  const text = execFileSync("ssh", ["-G", "-F", config, host], { encoding: "utf8" });
  return Object.fromEntries(text.split("\n").map((line) => [line.split(" ")[0], line.slice(line.indexOf(" ") + 1)]));
}

const EXPECTED = {
  hostname: "192.0.2.7",
  port: "2222",
  user: "Worker-1@build-42",
  forwardagent: "no",
  serveraliveinterval: "15",
};

test("ssh-config prints entries that OpenSSH reads, and writes nothing", async () => {
  using home = scratch();
  await using service = await serving([sandbox("Worker-1"), sandbox("w2"), sandbox("w3", { state: "destroyed" })]);
  const env = { ...service.env, HOME: home.path };
  const printed = await run(["ssh-config"], { env });
  expect(printed).toMatchObject({ status: 0, stderr: "" });
  expect(printed.stdout.match(/^Host .*$/gm)).toEqual(["Host Worker-1.build-42.roomd", "Host w2.build-42.roomd"]);
  const config = join(home.path, "printed");
  writeFileSync(config, printed.stdout);
  const read = parsed(config, "Worker-1.build-42.roomd");
  expect(read).toMatchObject(EXPECTED);
  expect(read.hostkeyalias).toMatch(/^roomd-[0-9a-f]{16}$/);
  const { items } = JSON.parse((await run(["ssh-config", "build-42", "Worker-1", "--json"], { env })).stdout);
  expect(items[0].host).toBe("Worker-1.build-42.roomd");
  expect(existsSync(join(home.path, ".ssh"))).toBe(false);
});

test("--install pins the key, is idempotent and keeps every line of the user; --remove restores their file", async () => {
  using base = scratch();
  const home = join(base.path, "a 100% home");
  const [config, entries, known] = ["config", "roomd.config", "roomd.known_hosts"].map((name) =>
    join(home, ".ssh", name),
  );
  if (!config || !entries || !known) throw new Error("no names");
  mkdirSync(join(home, ".ssh"), { recursive: true });
  const own = "# mine\nHost other\n  Port 99\n\nHost *\n  User ada";
  writeFileSync(config, own, { mode: 0o640 });
  await using service = await serving([sandbox("Worker-1"), sandbox("w2")]);
  const env = { ...service.env, HOME: home };
  for (let time = 0; time < 2; time++) {
    expect(await run(["ssh-config", "build-42", "--install"], { env })).toMatchObject({ status: 0, stderr: "" });
  }
  expect(readFileSync(config, "utf8")).toBe(`Include "${entries}"\n${own}`);
  expect([config, entries, known].map((file) => statSync(file).mode & 0o777)).toEqual([0o640, 0o600, 0o600]);
  const read = parsed(config, "Worker-1.build-42.roomd");
  expect(read).toMatchObject({ ...EXPECTED, stricthostkeychecking: "true", controlmaster: "auto" });
  expect(read.userknownhostsfile?.replaceAll("%%", "%")).toBe(known);
  expect(readFileSync(known, "utf8")).toBe(`${read.hostkeyalias} ${HOST_KEY}\n`);
  expect(parsed(config, "other")).toMatchObject({ port: "99", user: "ada" });
  expect(await run(["ssh-config", "build-42/w2", "--remove"], { env })).toMatchObject({ stdout: "removed 1 host\n" });
  expect(parsed(config, "w2.build-42.roomd")).toMatchObject({ user: "ada", port: "22" });
  expect(parsed(config, "Worker-1.build-42.roomd")).toMatchObject(EXPECTED);
  expect(await run(["ssh-config", "--remove"], { env })).toMatchObject({ stdout: "removed 1 host\n" });
  expect(readFileSync(config, "utf8")).toBe(own);
  expect([entries, known].map(existsSync)).toEqual([false, false]);
});

test.for([
  ["an address with an option", { ...GATEWAY, address: "192.0.2.7:22\n  ProxyCommand id" }],
  ["an address that is an option", { ...GATEWAY, address: "-oProxyCommand=id:22" }],
  ["a key with a line", { ...GATEWAY, host_key: `${HOST_KEY}\n* ${HOST_KEY}` }],
  ["a fingerprint with a line", { ...GATEWAY, fingerprint: "SHA256:a\nHost *\n  ProxyCommand id" }],
] as const)("a service that gives %s changes no file", async ([, ssh]) => {
  using home = scratch();
  await using service = await serving([sandbox("w")], ssh);
  const env = { ...service.env, HOME: home.path };
  for (const more of [["--install"], []]) {
    const { status, stdout, stderr } = await run(["ssh-config", "build-42", ...more], { env });
    expect([status, stdout, stderr]).toEqual([1, "", expect.stringContaining("not valid")]);
  }
  expect(existsSync(join(home.path, ".ssh"))).toBe(false);
});

test("a name with an option, and a service without a gateway, change no file either", async () => {
  using home = scratch();
  await using hostile = await serving([sandbox("w\n  ProxyCommand id")]);
  const refused = await run(["ssh-config", "--install"], { env: { ...hostile.env, HOME: home.path } });
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("ProxyCommand")]);
  await using without = await serving([sandbox("w")], null);
  const missing = await run(["ssh-config", "r", "w", "--install"], { env: { ...without.env, HOME: home.path } });
  expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining("ssh.listen")]);
  expect(existsSync(join(home.path, ".ssh"))).toBe(false);
});

test("code wakes the sandbox, installs its entry and opens the first available editor", async () => {
  using home = scratch();
  const programs = join(home.path, "bin");
  const seen = join(home.path, "seen");
  mkdirSync(programs);
  writeFileSync(join(programs, "cursor"), `#!/bin/sh\nprintf '%s\\n' "$@" >${seen}.new; mv ${seen}.new ${seen}\n`);
  chmodSync(join(programs, "cursor"), 0o755);
  await using service = await serving([sandbox("w", { state: "hibernated" })]);
  const env = { ...service.env, HOME: home.path, PATH: `${programs}:/usr/bin:/bin` };
  const opened = await run(["code", "build-42/w", "/root/a b"], { env });
  expect(opened).toMatchObject({ status: 0, stderr: "" });
  expect(opened.stdout).toBe("opened by: cursor --remote ssh-remote+w.build-42.roomd '/root/a b'\n");
  const deadline = Date.now() + 30_000;
  while (!existsSync(seen) && Date.now() < deadline) await Bun.sleep(20);
  expect(readFileSync(seen, "utf8")).toBe("--remote\nssh-remote+w.build-42.roomd\n/root/a b\n");
  expect(service.seen.filter(({ method }) => method === "POST").map(({ path }) => path)).toEqual([
    "/v1/rooms/build-42/sandboxes/w/resume",
  ]);
  expect(readFileSync(join(home.path, ".ssh/config"), "utf8")).toMatch(LINE);
});

test("code prints the command if there is no editor, and lists the sandbox's missing requirements", async () => {
  using home = scratch();
  const small = sandbox("w", { memory_mib: 512, egress: { mode: "none", allowlist: [], revision: 1 } });
  await using service = await serving([small], GATEWAY, []);
  const env = { ...service.env, HOME: home.path, PATH: "/usr/bin:/bin" };
  const { status, stdout, stderr } = await run(["code", "build-42", "w", "/root"], { env });
  expect([status, stdout]).toEqual([0, "code --remote ssh-remote+w.build-42.roomd /root\n"]);
  for (const part of ["512 MiB", "localServerDownload", "roomd ssh-key add", "no known editor"])
    expect(stderr).toContain(part);
  const zed = await run(["code", "build-42", "w", "/a b", "--with", "zed"], { env });
  expect(zed.stdout).toBe("zed ssh://w.build-42.roomd/a%20b\n");
  const idea = await run(["code", "build-42", "w", "--with", "idea", "--json"], { env });
  expect(JSON.parse(idea.stdout)).toEqual({
    host: "192.0.2.7",
    port: 2222,
    username: "w@build-42",
    directory: "/root",
  });
});

test("a command line without a sandbox or with a relative path is invalid", async () => {
  using home = scratch();
  await using service = await serving([sandbox("w")]);
  const env = { ...service.env, HOME: home.path };
  const wrong = [["build-42"], ["build-42/w/x"], ["build-42", "w", "relative"], ["build-42", "w", "/a", "/b"]];
  const ran = await Promise.all(wrong.map((words) => run(["code", ...words], { env })));
  expect(ran.map(({ status }) => status)).toEqual([2, 2, 2, 2]);
  expect(service.seen).toEqual([]);
});
