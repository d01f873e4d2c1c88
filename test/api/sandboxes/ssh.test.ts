/** SSH public keys, and the gateway's treatment of unauthenticated clients. Sessions are in test/vm/ssh.test.ts. */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ALGORITHMS } from "../../../daemon/edge/ssh/algorithms.ts";
import { HYBRID_KEX } from "../../../daemon/edge/ssh/mlkem.ts";
import { sentenceForSeveral } from "../../../daemon/edge/ssh/remote-owner.ts";
import { run as runProgram, SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, makeOrg, run } from "../calls.ts";
import { DESCRIBED_MIN_MIB } from "./described-template.ts";
import { withFailedSandbox } from "./failed-sandbox.ts";

let daemon: TestDaemon;
let client: SshClient;

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_SSH_LOGIN_GRACE: "2s", ROOMD_SSH_MAX_ATTEMPTS: "3" } });
  client = new SshClient(sshPort(daemon));
  await daemon.room("here");
});
afterAll(async () => {
  client[Symbol.dispose]();
  await daemon.stop();
});

const KEYS = "/v1/orgs/self/ssh-keys";

function keyOf(kind: string[], name: string): string {
  const file = join(client.home, name);
  spawnSync("ssh-keygen", ["-q", ...kind, "-N", "", "-C", `${name} key`, "-f", file]);
  return spawnSync("cat", [`${file}.pub`])
    .stdout.toString()
    .trim();
}

describe("public keys", () => {
  test("are added, listed in the format of ssh-keygen, and removed", async () => {
    for (const kind of [
      ["-t", "ed25519"],
      ["-t", "ecdsa", "-b", "384"],
      ["-t", "rsa", "-b", "2048"],
    ]) {
      const name = kind.join("").replaceAll("-", "_");
      const line = keyOf(kind, name);
      const added = await daemon.api("POST", KEYS, { public_key: line });
      expect(added.status, JSON.stringify(added.body)).toBe(201);
      const shown = spawnSync("ssh-keygen", ["-l", "-f", join(client.home, `${name}.pub`)]).stdout.toString();
      expect(shown).toContain(added.body.fingerprint);
      expect(added.body).toMatchObject({ name: `${name} key`, expires_at: null, created_by: { type: "key" } });
      expect(line).toContain(added.body.public_key);
      expect((await daemon.api("POST", KEYS, { public_key: line })).body.code).toBe("already_exists");
    }
    const { items } = await daemon.ok("GET", KEYS);
    expect(items).toHaveLength(3);
    for (const { ssh_key_id, fingerprint } of items) {
      expect(await daemon.ok("DELETE", `${KEYS}/${ssh_key_id}`)).toEqual({ ssh_key_id, fingerprint, state: "removed" });
      expect((await daemon.api("DELETE", `${KEYS}/${ssh_key_id}`)).body.code).toBe("key_not_found");
    }
    expect((await daemon.ok("GET", KEYS)).items).toEqual([]);
  });

  test("that are invalid are refused with the reason", async () => {
    const good = client.publicKey.split(" ");
    const wrong: Record<string, string> = {
      "": "",
      "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
      "one line": `${client.publicKey}\n${client.publicKey}`,
      "begin with one of": `ssh-dss ${good[1]}`,
      "not a valid public key of type": `ssh-rsa ${good[1]}`,
      "2048 to": keyOf(["-t", "rsa", "-b", "1024"], "weak"),
      "public key of type ssh-ed25519": `ssh-ed25519 ${good[1]?.slice(0, 40)}`,
    };
    for (const [says, public_key] of Object.entries(wrong)) {
      const { status, body } = await daemon.api("POST", KEYS, { public_key });
      expect({ says, status, code: body.code }).toEqual({ says, status: 422, code: "validation_failed" });
      expect(JSON.stringify(body.errors)).toContain(says);
    }
  });

  test("belong to an organization, and grant nothing that their creator may not do", async () => {
    const other = await makeOrg(daemon, "elsewhere");
    const { ssh_key_id } = await daemon.ok("POST", KEYS, { public_key: client.publicKey });
    const theirs = (method: string, path: string, body?: unknown) =>
      daemon.api(method, path, body, bearer(other.api_key));
    expect((await theirs("GET", KEYS)).body.items).toEqual([]);
    expect((await theirs("DELETE", `${KEYS}/${ssh_key_id}`)).body.code).toBe("key_not_found");
    expect((await theirs("GET", `/v1/orgs/${daemon.orgId}/ssh-keys`)).body.code).toBe("org_not_found");
    // A public key is no secret: another organization may have it too.
    expect((await theirs("POST", KEYS, { public_key: client.publicKey })).status).toBe(201);
    const { key } = await makeKey(daemon, { scopes: ["keys:write"] });
    const added = await daemon.api("POST", KEYS, { public_key: client.publicKey }, bearer(key));
    expect({ status: added.status, code: added.body.code }).toEqual({ status: 403, code: "scope_escalation" });
    await daemon.ok("DELETE", `${KEYS}/${ssh_key_id}`);
  });

  describe("end with the API key that adds them", () => {
    afterEach(async () => {
      for (const { ssh_key_id } of (await daemon.ok("GET", KEYS)).items)
        await daemon.ok("DELETE", `${KEYS}/${ssh_key_id}`);
    });
    const MAY_ADD = ["keys:write", "terminal"] as const;
    let count = 0;
    const addAs = (key: string, more: object = {}) =>
      daemon.api("POST", KEYS, { public_key: keyOf(["-t", "ed25519"], `made-${count++}`), ...more }, bearer(key));
    const isListed = async (sshKeyId: string) =>
      (await daemon.ok("GET", KEYS)).items.some(({ ssh_key_id }: { ssh_key_id: string }) => ssh_key_id === sshKeyId);

    test("at its expiry, or earlier if requested", async () => {
      const short = await makeKey(daemon, { scopes: MAY_ADD, expires_in_seconds: 3600 });
      const { items } = await daemon.ok("GET", "/v1/orgs/self/keys");
      const { expires_at } = items.find(({ key_id }: { key_id: string }) => key_id === short.key_id);
      expect((await addAs(short.key)).body).toMatchObject({ expires_at });
      const sooner = (await addAs(short.key, { expires_in_seconds: 60 })).body;
      expect(Date.parse(sooner.expires_at)).toBeLessThan(Date.parse(expires_at));
      const later = await addAs(short.key, { expires_in_seconds: 7200 });
      expect(later).toMatchObject({ status: 403, body: { code: "scope_escalation", details: { expires_at } } });
    });

    test("when it is revoked, which is audited, but not when it is rotated", async () => {
      const key = await makeKey(daemon, { scopes: MAY_ADD });
      const { ssh_key_id } = (await addAs(key.key)).body;
      const next = await daemon.ok("POST", `/v1/orgs/self/keys/${key.key_id}/rotate`, { grace_seconds: 0 });
      expect(await isListed(ssh_key_id)).toBe(true);
      const another = (await addAs(next.key)).body.ssh_key_id;
      await daemon.ok("DELETE", `/v1/orgs/self/keys/${next.key_id}`);
      expect([await isListed(ssh_key_id), await isListed(another)]).toEqual([false, false]);
      const [record] = (await daemon.ok("GET", "/v1/orgs/self/audit?event=key.revoked&limit=1")).items;
      expect(record.details.ssh_key_ids).toEqual([ssh_key_id, another]);
    });

    test("of an administrator, too; those that the operator added stay", async () => {
      const owner = await makeKey(daemon, {});
      const { ssh_key_id } = (await addAs(owner.key)).body;
      const file = join(client.home, "by-operator");
      keyOf(["-t", "ed25519"], "by-operator");
      const added = await run(daemon, "org", "ssh-key", "add", `${file}.pub`, "--org", daemon.orgId);
      const { ended } = await daemon.ok("DELETE", `/v1/orgs/self/keys/${owner.key_id}`);
      expect(ended).toEqual({ webhooks: 0, ports: 0, ssh_keys: 1, applications: 0 });
      expect([await isListed(ssh_key_id), await isListed(added.ssh_key_id)]).toEqual([false, true]);
      const [record] = (await daemon.ok("GET", "/v1/orgs/self/audit?event=key.ssh_removed&limit=1")).items;
      expect(record).toMatchObject({ source: "reconciler", details: { ssh_key_id, reason: "maker_ended" } });
    });

    test("also when the operator revokes it", async () => {
      const key = await makeKey(daemon, { scopes: MAY_ADD });
      const { ssh_key_id } = (await addAs(key.key)).body;
      await run(daemon, "key", "revoke", key.key_id);
      expect(await isListed(ssh_key_id)).toBe(false);
    });
  });

  test("can be added by the operator", async () => {
    const file = join(client.home, "id.pub");
    const added = await run(daemon, "org", "ssh-key", "add", file, "--org", daemon.orgId);
    expect(added.name).toBe("test");
    expect((await run(daemon, "org", "ssh-key", "list", "--org", daemon.orgId)).items[0]).toMatchObject(added);
    await run(daemon, "org", "ssh-key", "remove", added.ssh_key_id, "--org", daemon.orgId);
    expect((await daemon.ok("GET", KEYS)).items).toEqual([]);
  });
});

describe("the gateway", () => {
  const login = (user: string, more: string[] = []) => client.ssh(user, ["true"], "", more);

  test("gives every unauthorized caller the same answer", async () => {
    const { ssh_key_id } = await daemon.ok("POST", KEYS, { public_key: client.publicKey });
    const users = ["none@here", "none@nowhere", "none", "a@b@c", "@", "x".repeat(500)];
    const answers = await Promise.all([
      ...users.map((user) => login(user)),
      ...users.map((user) => client.sshByPassword(user, daemon.apiKey, ["true"])),
      ...[`key-${"A".repeat(43)}`, "sat_none", "", daemon.operatorKey].map((each) =>
        client.sshByPassword("none@here", each, ["true"]),
      ),
    ]);
    for (const { status, stderr } of answers) {
      expect(status).toBe(255);
      expect(stderr.trim()).toMatch(/Permission denied \(publickey,password\)\.$/);
    }
    await daemon.ok("DELETE", `${KEYS}/${ssh_key_id}`);
    const { items } = await daemon.ok("GET", "/v1/rooms/here/audit?event=ssh.login");
    expect(items[0]).toMatchObject({ source: "ssh", error_code: "sandbox_not_found", actor: { type: "key" } });
  });

  test("disconnects clients that do not log in in time, and after too many attempts", async () => {
    const silent = await open();
    const began = performance.now();
    await closed(silent);
    expect(performance.now() - began).toBeGreaterThan(1000);
    const many = ["a", "b", "c", "d", "e"].flatMap((name) => {
      keyOf(["-t", "ed25519"], name);
      return ["-o", `IdentityFile=${join(client.home, name)}`];
    });
    const tried = await login("none@here", many);
    expect(tried.stderr).toMatch(/closed by|Connection reset|disconnect/i);
  });

  test("admits a login while a thousand idle connections are open", async () => {
    const idle = await Promise.all(Array.from({ length: 1000 }, open));
    const answer = await login("none@here");
    expect(answer.stderr).toContain("Permission denied");
    for (const socket of idle) socket.destroy();
  });

  test("has its own persistent host key, which only root can read", async () => {
    const file = join(daemon.dataDir, "ssh_host_ed25519_key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const scan = async () =>
      (await runProgram("ssh-keyscan", ["-p", String(sshPort(daemon)), "127.0.0.1"])).stdout
        .toString()
        .split(" ")
        .slice(1)
        .join();
    const before = await scan();
    expect(before).toContain("ssh-ed25519");
    await daemon.restart("SIGTERM");
    client.port = sshPort(daemon);
    expect(await scan()).toBe(before);
  });

  test("offers the documented algorithms, with strict key exchange", async () => {
    const { stderr } = await login("none@here", ["-vv"]);
    const [, server = ""] = stderr.split("peer server KEXINIT proposal");
    const offered = (name: string) => new RegExp(`${name}: (\\S+)`).exec(server)?.[1]?.split(",");
    expect(offered("KEX algorithms")).toEqual([HYBRID_KEX, ...ALGORITHMS.kex, "kex-strict-s-v00@openssh.com"]);
    expect(offered("host key algorithms")).toEqual([...ALGORITHMS.serverHostKey]);
    expect(offered("ciphers stoc")).toEqual([...ALGORITHMS.cipher]);
    expect(offered("MACs ctos")).toEqual([...ALGORITHMS.hmac]);
    expect(offered("compression ctos")).toEqual(["none"]);
    expect(JSON.stringify(ALGORITHMS)).not.toMatch(/sha1|-cbc|nistp|diffie-hellman|md5|arcfour/);
  });

  test("passes ssh-audit", async () => {
    const { stdout, status } = await runProgram("ssh-audit", [
      "--level=fail",
      "-p",
      String(sshPort(daemon)),
      "127.0.0.1",
    ]);
    expect(stdout.toString()).not.toContain("[fail]");
    expect(status).not.toBe(3);
    expect(stdout.toString().length).toBeGreaterThan(0);
  });
});

test("a key of two organizations opens no sandbox by a name that both use, and each by its ID", async () => {
  const { daemon: both, rows } = await withFailedSandbox("agent-1");
  using known = new SshClient(sshPort(both));
  try {
    const other = await makeOrg(both, "other");
    const own = bearer(both.apiKey);
    const others = bearer(other.api_key);
    await both.api("POST", "/v1/rooms", { room_id: "r" }, others);
    const sandbox = { agent_id: "agent-1", guest_cid: 9200, memory_mib: DESCRIBED_MIN_MIB };
    await both.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox, others);
    // A public key is not a secret: another organization may add it first.
    for (const headers of [others, own]) await both.api("POST", KEYS, { public_key: known.publicKey }, headers);
    const logins = async (headers: Record<string, string>) =>
      (await both.api("GET", "/v1/orgs/self/audit?event=ssh.login", undefined, headers)).body.items.length;
    const { sandbox_id } = await both.ok("GET", "/v1/rooms/r/sandboxes/agent-1");
    const result = await known.ssh("agent-1@r", ["true"]);
    const sentence = sentenceForSeveral({ room_id: "r", sandbox: "agent-1" });
    expect([result.status, result.stderr]).toEqual([255, expect.stringContaining(sentence)]);
    expect([await logins(own), await logins(others)]).toEqual([0, 0]);
    await known.ssh(`${sandbox_id}@r`, ["true"]);
    expect([await logins(own), await logins(others)]).toEqual([1, 0]);
    const [{ ssh_key_id }] = (await both.api("GET", KEYS, undefined, others)).body.items;
    await both.api("DELETE", `${KEYS}/${ssh_key_id}`, undefined, others);
    await known.ssh("agent-1@r", ["true"]);
    expect([await logins(own), await logins(others)]).toEqual([2, 0]);
  } finally {
    rows.close();
    await both.stop();
  }
});

test("disabled, it does not listen", async () => {
  await using off = await TestDaemon.start({ env: { ROOMD_SSH_LISTEN: "" } });
  expect(off.ready).not.toContain("ssh");
});

async function open(): Promise<Socket> {
  const socket = connect(sshPort(daemon), "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  await new Promise<void>((done) => socket.once("connect", done).once("close", () => done()));
  return socket;
}

function closed(socket: Socket): Promise<void> {
  return new Promise((done) => (socket.destroyed ? done() : socket.once("close", () => done())));
}
