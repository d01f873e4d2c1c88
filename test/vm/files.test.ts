/**
 * Files of a sandbox by the guest's agent: large ones fast, owners by name, changes as they happen, and the same in an image that has
 * nothing but the program that it is for.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { run, SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { testAlone, until, withGuests } from "../harness/guests.ts";
import { ownTemplates } from "../harness/images/built-templates.ts";
import { writeImage } from "../harness/images/oci-image.ts";

const MIB = 1024 * 1024;
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** The calls about files of one sandbox, and of its room's drive. */
function filesOf(daemon: TestDaemon, room: string, agent: string) {
  const base = `/v1/rooms/${room}/sandboxes/${agent}/files`;
  const fetched = (path: string, init: RequestInit = {}) =>
    fetch(`${daemon.url}${path}`, { ...init, headers: { authorization: `Bearer ${daemon.apiKey}`, ...init.headers } });
  return {
    base,
    put: (path: string, body: string | Uint8Array<ArrayBuffer>, query = "", headers: Record<string, string> = {}) =>
      fetched(`${base}/raw${path}${query}`, { method: "PUT", body, headers }),
    get: (path: string, headers: Record<string, string> = {}) => fetched(`${base}/raw${path}`, { headers }),
    drivePut: (path: string, body: string | Uint8Array<ArrayBuffer>) =>
      fetched(`/v1/rooms/${room}/drive/files${path}`, { method: "PUT", body }),
    driveGet: (path: string) => fetched(`/v1/rooms/${room}/drive/files${path}`),
    problem: async (method: string, path: string, body?: object) =>
      (await daemon.problem(method, `${base}${path}`, body)).code,
    fetched,
  };
}

withGuests("files of a sandbox", {}, (guests) => {
  const files = () => filesOf(guests.daemon, "files", "a");
  const a = (line: string) => guests.daemon.sh("files", "a", line);

  beforeAll(async () => {
    await guests.daemon.room("files");
    await guests.daemon.sandbox("files", "a", guests.cid());
  });

  test("20 MB are transferred completely both ways; the drive's duration is the reference", async () => {
    const bytes = randomBytes(20 * MIB);
    const took = async (work: () => Promise<Response>) => {
      const begin = performance.now();
      const answer = await work();
      const read = new Uint8Array(await answer.arrayBuffer());
      expect(answer.status, read.byteLength < 1000 ? Buffer.from(read).toString() : "").toBeLessThan(300);
      return { ms: performance.now() - begin, read };
    };
    const best = async (work: () => Promise<Response>) => {
      const tries = [await took(work), await took(work), await took(work)];
      return Math.min(...tries.map(({ ms }) => ms));
    };
    const drive = {
      write: await best(() => files().drivePut("/large", bytes)),
      read: await best(() => files().driveGet("/large")),
    };
    const own = {
      write: await best(() => files().put("/root/large", bytes)),
      read: await best(() => files().get("/root/large")),
    };
    console.log("20 MB, ms", { drive, own });
    expect(await a("sha256sum </root/large")).toContain(sha256(bytes));
    expect(sha256((await took(() => files().get("/root/large"))).read)).toBe(sha256(bytes));
  });

  test("ranges, validators and preconditions follow HTTP", async () => {
    expect((await files().put("/root/f", "0123456789")).status).toBe(201);
    const part = await files().get("/root/f", { range: "bytes=2-4" });
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([206, "bytes 2-4/10", "234"]);
    expect((await files().get("/root/f", { range: "bytes=10-" })).status).toBe(416);
    const etag = part.headers.get("etag") ?? "";
    expect((await files().get("/root/f", { "if-none-match": etag })).status).toBe(304);
    expect((await files().put("/root/f", "x", "", { "if-none-match": "*" })).status).toBe(412);
    expect((await files().put("/root/f", "new", "", { "if-match": etag })).status).toBe(200);
    expect((await files().put("/root/f", "newer", "", { "if-match": etag })).status).toBe(412);
    expect(await a("cat /root/f")).toBe("new");
  });

  test("owner and mode are as requested, and a non-root program can change its own files", async () => {
    const made = await files().put("/home/agent/in/run.sh", "#!/bin/sh\necho ran\n", "?mode=0755&owner=agent");
    expect(await made.json()).toMatchObject({ mode: "0755", created: true, path: "/home/agent/in/run.sh" });
    const { daemon } = guests;
    const line = "/home/agent/in/run.sh; echo more >>/home/agent/in/run.sh; touch /home/agent/in/beside";
    const ran = await daemon.ok("POST", "/v1/rooms/files/sandboxes/a/exec", {
      argv: ["sh", "-c", line],
      user: "agent",
    });
    expect([ran.exit_code, ran.stdout, ran.stderr]).toEqual([0, "ran\n", ""]);
    const refused = await files().put("/root/x", "x", "?owner=stranger");
    expect([refused.status, ((await refused.json()) as Json).errors?.[0]?.field]).toEqual([422, "owner"]);
  });

  test("the errors are the same as for the drive", async () => {
    await a("mkdir -p /root/full/inner; mkfifo /root/pipe; : >/root/file");
    const { problem, base } = files();
    expect(await problem("GET", "/raw/root/none")).toBe("path_not_found");
    expect(await problem("GET", "/raw/root/full")).toBe("is_directory");
    expect(await problem("GET", "/raw/root/pipe")).toBe("invalid_path");
    expect(await problem("GET", "/raw/dev/zero")).toBe("invalid_path");
    expect(await problem("DELETE", "?path=/root/full")).toBe("not_empty");
    expect(await problem("DELETE", "?path=/mnt/drive&recursive=true")).toBe("invalid_path");
    expect(await problem("GET", "/stat?path=relative")).toBe("invalid_path");
    expect(await problem("GET", "/stat?path=/root/../etc")).toBe("invalid_path");
    expect(await problem("POST", "/mkdir", { path: "/root/file" })).toBe("already_exists");
    expect(await problem("POST", "/move", { from: "/root/file", to: "/root/full" })).toBe("already_exists");
    const audit = await guests.daemon.ok("GET", "/v1/rooms/files/audit?event=file.written&limit=1");
    expect(audit.items[0]).toMatchObject({ agent_id: "a", outcome: "error", details: { path: "/root/x" } });
    expect((await guests.daemon.ok("GET", `${base}?path=/root/full&recursive=true`)).items).toMatchObject([
      { path: "/root/full/inner", name: "inner", type: "directory" },
    ]);
  });

  test("the drive is at its usual path for file calls, and files moved to it are visible to others", async () => {
    await a("mkdir /root/out; echo result >/root/out/r");
    await guests.daemon.ok("POST", `${files().base}/move`, { from: "/root/out", to: "/mnt/drive/out" });
    expect(await (await files().driveGet("/out/r")).text()).toBe("result\n");
    expect(await (await files().get("/mnt/drive/out/r")).text()).toBe("result\n");
    expect(await files().problem("GET", "/stat?path=/root/out")).toBe("path_not_found");
  });

  test("changes are streamed as they happen, and an interrupted watch resumes", async () => {
    const { base, fetched } = files();
    const read = async (
      query: string,
      enough: (events: { type: string; path: string; cursor: string }[]) => boolean,
    ) => {
      const cut = new AbortController();
      const answer = await fetched(`${base}/watch?${query}`, { signal: cut.signal });
      const events: { type: string; path: string; cursor: string }[] = [];
      let rest = "";
      const reading = (async () => {
        for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
          const lines = (rest + Buffer.from(chunk).toString()).split("\n");
          rest = lines.pop() ?? "";
          events.push(...lines.map((line) => JSON.parse(line)));
        }
      })();
      reading.catch(() => {});
      return { events, end: () => until("the change is reported", () => enough(events)).finally(() => cut.abort()) };
    };
    await a("mkdir -p /root/w");
    const sees = (path: string) => (events: { type: string; path: string }[]) =>
      events.some((each) => each.type === "created" && each.path === path);
    const first = await read("path=/root/w&recursive=true", sees("/root/w/d/one"));
    await until("the watch is set", () => first.events.some(({ type }) => type === "watching"));
    await a("mkdir /root/w/d; echo 1 >/root/w/d/one");
    await first.end();
    const { cursor = "" } = first.events.at(-1) ?? {};
    await a("echo 2 >/root/w/two");
    const second = await read(`path=/root/w&recursive=true&after=${cursor}`, sees("/root/w/two"));
    await second.end();
    expect(sees("/root/w/d/one")(second.events)).toBe(false);
  });

  test("a file of a hibernated sandbox is read, which wakes the sandbox", async () => {
    const { daemon } = guests;
    await daemon.ok("PATCH", "/v1/rooms/files/sandboxes/a", { lifecycle: { on_idle: "hibernate", wake_on: ["api"] } });
    await daemon.ok("POST", "/v1/rooms/files/sandboxes/a/hibernate");
    expect(await (await files().get("/root/f")).text()).toBe("new");
  });
});

testAlone(
  "files of an image without a shell or other programs are read and written",
  { prepare: async (daemon) => void ownTemplates(daemon) },
  async (daemon) => {
    const reference = await writeImage(
      join(daemon.home, "image"),
      [
        [
          { name: "app/config.json", content: "{}" },
          { name: "etc/passwd", content: "root:x:0:0::/:/none\napp:x:700:701::/app:/none\n" },
        ],
      ],
      { User: "app" },
    );
    expect((await daemon.cli(["template", "import", "bare", reference, "--disk", "1024", "--json"])).stderr).toBe("");
    await daemon.room("bare");
    await daemon.sandbox("bare", "a", 9321, { template_id: "bare" });
    const files = filesOf(daemon, "bare", "a");
    expect(await (await files.get("/app/config.json")).text()).toBe("{}");
    // As the user that its image names.
    expect(await (await files.put("/app/data/in.txt", "text")).json()).toMatchObject({ uid: 700, created: true });
    expect(await (await files.get("/app/data/in.txt")).text()).toBe("text");
    const { items } = await daemon.ok("GET", `${files.base}?path=/app&recursive=true`);
    expect(items.map(({ path }: { path: string }) => path)).toEqual([
      "/app/config.json",
      "/app/data",
      "/app/data/in.txt",
    ]);
    using ssh = new SshClient(sshPort(daemon));
    await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: ssh.publicKey });
    const copy = join(ssh.home, "copy");
    const batch = `get /app/data/in.txt ${copy}\nput ${copy} /app/data/out.txt\n`;
    const { status, stderr } = await run("sftp", [...ssh.options, "-o", "User=a@bare", "-b", "-", "127.0.0.1"], batch);
    expect([status, stderr, readFileSync(copy, "utf8")]).toEqual([0, "", "text"]);
    expect(await (await files.get("/app/data/out.txt")).text()).toBe("text");
    await daemon.ok("DELETE", `${files.base}?path=/app/data&recursive=true`);
    expect(await files.problem("GET", "/stat?path=/app/data")).toBe("path_not_found");
  },
  600_000,
);
