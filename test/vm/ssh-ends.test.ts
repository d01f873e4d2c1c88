/** SSH logins to a sandbox: authorized users, messages to refused ones, and how fast a session ends when its authorization does. */
import { connect, type Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { type Ended, ended, SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import type { Json } from "../harness/daemon.ts";
import { until, untilState, withGuests } from "../harness/guests.ts";

const ACCESS = "/v1/rooms/ends/sandboxes/it/ssh-access";
const KEYS = "/v1/orgs/self/ssh-keys";

withGuests("the end of ssh sessions", {}, (guests) => {
  let client: SshClient;
  let keyId: string;

  beforeAll(async () => {
    const { daemon } = guests;
    client = new SshClient(sshPort(daemon));
    await daemon.room("ends");
    await daemon.sandbox("ends", "it", guests.cid());
    keyId = (await daemon.ok("POST", KEYS, { public_key: client.publicKey })).ssh_key_id;
    return () => client[Symbol.dispose]();
  });

  const access = (body: Json = {}): Promise<Json> => guests.daemon.ok("POST", ACCESS, body);
  const by = (password: string, user = "it@ends") => client.sshByPassword(user, password, ["echo in"]);
  const makeKey = async (...more: string[]) => {
    const { stdout } = await guests.daemon.cli(["key", "create", "--name", "k", "--json", ...more]);
    return JSON.parse(stdout) as { key: string; key_id: string };
  };
  const cli = async (...args: string[]) => expect((await guests.daemon.cli(args)).status).toBe(0);

  /** A session that lives until it is cut; how long that took from `cause` on. */
  async function cut(password: string | null, cause: () => Promise<unknown>): Promise<{ end: Ended; ms: number }> {
    const child = client.startAs("it@ends", password, ["echo in; sleep 1000"]);
    let seen = "";
    child.stdout?.on("data", (chunk) => {
      seen += chunk;
    });
    const over = ended(child);
    await until("the session is open", () => seen === "in\n");
    await cause();
    const began = performance.now();
    const end = await over;
    return { end, ms: performance.now() - began };
  }

  test("an API key and a short-lived token are valid passwords; all others get the same answer", async () => {
    const made = await access({ expires_in_seconds: 60 });
    expect(made).toMatchObject({ host: "127.0.0.1", port: client.port, username: "it@ends" });
    expect(made.ssh_command).toBe(`ssh -p ${client.port} it@ends@127.0.0.1`);
    for (const password of [guests.daemon.apiKey, made.token]) {
      expect((await by(password)).stdout.toString()).toBe("in\n");
    }
    const other = JSON.parse((await guests.daemon.cli(["org", "create", "--name", "b", "--json"])).stdout);
    const bound = await makeKey("--org", guests.daemon.orgId, "--room", "elsewhere");
    const unscoped = await makeKey("--org", guests.daemon.orgId, "--scope", "exec");
    const otherAgent = await makeKey("--org", guests.daemon.orgId, "--agent", "someone");
    const wrong = [
      by(other.api_key),
      by(bound.key),
      by(unscoped.key),
      by(otherAgent.key),
      by(`${made.token}x`),
      by(`key-${"A".repeat(43)}`),
      by(made.token, "it@nowhere"),
      by(guests.daemon.apiKey, "none@ends"),
    ];
    const answers = (await Promise.all(wrong)).map(
      ({ status, stderr }) => `${status} ${stderr.replace(/\S+@127/, "127")}`,
    );
    expect(new Set(answers).size, answers.join()).toBe(1);
    expect(answers[0]).toContain("Permission denied");
  });

  test("another organization's public key is refused, and so is an unregistered one", async () => {
    using stranger = new SshClient(client.port);
    const before = await stranger.ssh("it@ends", ["true"]);
    const other = JSON.parse((await guests.daemon.cli(["org", "create", "--name", "c", "--json"])).stdout);
    await guests.daemon.api(
      "POST",
      KEYS,
      { public_key: stranger.publicKey },
      { authorization: `Bearer ${other.api_key}` },
    );
    const after = await stranger.ssh("it@ends", ["true"]);
    expect([after.status, after.stderr]).toEqual([before.status, before.stderr]);
    expect(after.stderr).toContain("Permission denied");
  });

  test("a thousand idle connections do not prevent a login", async () => {
    const idle = await Promise.all(Array.from({ length: 1000 }, () => open(client.port)));
    const began = performance.now();
    expect((await client.ssh("it@ends", ["echo in"])).stdout.toString()).toBe("in\n");
    console.log(`a login beside 1000 idle connections took ${Math.round(performance.now() - began)} ms`);
    for (const socket of idle) socket.destroy();
  });

  test("a session is disconnected within a second of its key's or token's end", async () => {
    const { access_id, token } = await access();
    const listed = async () =>
      (await guests.daemon.ok("GET", ACCESS)).items.find((each: Json) => each.access_id === access_id);
    const withdrawn = await cut(token, async () => {
      expect(await listed()).toMatchObject({ sessions: 1 });
      await guests.daemon.ok("DELETE", `${ACCESS}/${access_id}`);
    });
    expect(await listed()).toBeUndefined();
    expect((await by(token)).status).toBe(255);

    const { key, key_id } = await makeKey("--org", guests.daemon.orgId);
    const revoked = await cut(key, () => cli("key", "revoke", key_id));
    const removed = await cut(null, () => guests.daemon.ok("DELETE", `${KEYS}/${keyId}`));
    expect((await client.ssh("it@ends", ["true"])).status).toBe(255);
    keyId = (await guests.daemon.ok("POST", KEYS, { public_key: client.publicKey })).ssh_key_id;

    const short = await access({ expires_in_seconds: 3 });
    const expired = await cut(short.token, async () =>
      until("the access has expired", () => Date.now() >= Date.parse(short.expires_at)),
    );
    for (const { end, ms } of [withdrawn, revoked, removed, expired]) {
      expect(end.status).toBe(255);
      expect(ms).toBeLessThan(1500);
    }
    // The programs in it are terminated.
    await until(
      "no process remains in the guest",
      async () => (await client.ssh("it@ends", ["pgrep -x sleep"])).status === 1,
    );
  });

  test("standby keeps a session, and refuses new ones with the reason", async () => {
    const child = client.startAs("it@ends", null, ["cat"]);
    const over = ended(child);
    child.stdin?.write("before ");
    await until("the process runs", async () => (await client.ssh("it@ends", ["pgrep -x cat"])).status === 0);
    await guests.daemon.ok("PATCH", "/v1/rooms/ends/sandboxes/it", { lifecycle: { wake_on: [] } });
    await guests.daemon.ok("POST", "/v1/rooms/ends/sandboxes/it/standby");
    await untilState(guests.daemon, "ends", "it", "paused");
    const refused = await client.ssh("it@ends", ["true"]);
    expect(refused).toMatchObject({ status: 255, stderr: expect.stringMatching(/^roomd: .*paused/) });
    await guests.daemon.ok("POST", "/v1/rooms/ends/sandboxes/it/resume");
    child.stdin?.end("after");
    expect((await over).stdout.toString()).toBe("before after");
  });

  test("a session is disconnected with its sandbox, and with its room", async () => {
    const destroyed = await cut(null, () => guests.daemon.ok("DELETE", "/v1/rooms/ends/sandboxes/it"));
    expect(destroyed.end.status).toBe(255);
    await guests.daemon.sandbox("ends", "it", guests.cid());
    const torn = await cut(null, () => guests.daemon.ok("DELETE", "/v1/rooms/ends"));
    expect(torn.end.status).toBe(255);
    const { items } = await guests.daemon.ok("GET", "/v1/orgs/self/audit?event=ssh.session_closed&limit=1000");
    const reasons = new Set(items.map((each: Json) => each.details.reason));
    expect(reasons).toEqual(new Set(["left", "unauthorized", "sandbox_ended"]));
  });
});

async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  await new Promise<void>((done) => socket.once("connect", done).once("close", () => done()));
  return socket;
}
