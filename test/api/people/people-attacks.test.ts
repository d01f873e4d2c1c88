/** Attacks on accounts: bypass of a proof, access after removal, use of other users' links, and attacks on a sign-in. */
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { formWith, Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { idOf, invite, PASSWORD, People, tokenOf } from "../../harness/people.ts";
import { bearer } from "../calls.ts";

const SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUoB5TV0m0d6mFwC0ZfL0nX2bq3mJm1xJdJ0rYt7yQh";
const VISIT = { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

let daemon: TestDaemon;
let people: People;
let owner: Visitor;

const asKey = (key: string, method: string, path: string, body?: unknown) =>
  daemon.api(method, path, body, bearer(key));
const member = (role: string, email?: string) => people.member(role, email === undefined ? {} : { email });
const foreign = () => people.foreign();
const staleProofs = () => people.staleProofs();
const prove = (visitor: Visitor) => people.prove(visitor);

/** Response to a POST that sends most of its body after `meanwhile`. */
async function slowly(visitor: Visitor, path: string, type: string, body: string, meanwhile: () => Promise<void>) {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.on("data", (bytes) => {
    received += bytes.toString();
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    "Connection: close",
    `Content-Type: ${type}`,
    `Content-Length: ${body.length}`,
    ...Object.entries(visitor.headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body.slice(0, 2)}`);
  await meanwhile();
  socket.write(body.slice(2));
  await closed;
  return received;
}

beforeAll(async () => {
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
  owner = people.owner;
});
afterAll(() => daemon.stop());
beforeEach(async () => prove(owner));

describe("a session cookie alone", () => {
  test("gets neither a proof nor a new session by accepting an invitation", async () => {
    const mallory = await foreign();
    const thief = owner.copy();
    staleProofs();
    await prove(mallory);
    const before = (await owner.api("GET", "/v1/account/sessions")).body.items.length;
    expect(await thief.send(await invite(mallory, "viewer"), { as: "me" })).toMatchObject({ status: 303 });
    expect(thief.session).toBe(owner.session);
    expect((await thief.api("GET", "/v1/account")).body.proved_until).toBeNull();
    expect((await owner.api("GET", "/v1/account/sessions")).body.items).toHaveLength(before);
    expect((await thief.api("PATCH", "/v1/account", { org_id: daemon.orgId })).status).toBe(200);
    const password = await thief.send("/account/ways", { do: "password", password: "the thief's own one" });
    expect([password.status, password.text]).toEqual([403, expect.stringContaining('name="proof"')]);
    expect((await thief.api("POST", "/v1/orgs/self/keys", { name: "x" })).body.code).toBe("proof_required");
  });

  test("does not share the proof that its owner gives afterwards", async () => {
    const visitor = await member("member");
    const thief = visitor.copy();
    staleProofs();
    await prove(visitor);
    expect((await visitor.api("GET", "/v1/account")).body.proved_until).not.toBeNull();
    expect((await thief.api("GET", "/v1/account")).body.code).toBe("session_ended");
  });

  test("that was stolen has no effect after sign-out, however slowly its form arrives", async () => {
    const visitor = await member("member");
    const path = await invite(await foreign(), "viewer");
    const { user_id, email } = (await visitor.api("GET", "/v1/account")).body;
    const received = await slowly(visitor, path, "application/x-www-form-urlencoded", "as=me", async () => {
      expect((await visitor.api("GET", "/v1/account")).body.organizations).toHaveLength(1);
      expect((await daemon.cli(["user", "sign-out", email])).status).toBe(0);
    });
    expect(received).not.toContain("303");
    const { items } = JSON.parse((await daemon.cli(["user", "list", "--json"])).stdout);
    expect(items.find((each: Json) => each.user_id === user_id).organizations).toHaveLength(1);
  });

  test("cannot use a proof that expires while its request arrives", async () => {
    const body = JSON.stringify({ name: "too late" });
    const received = await slowly(owner, "/v1/orgs/self/keys", "application/json", body, async () => {
      expect((await owner.api("GET", "/v1/account")).body.proved_until).not.toBeNull();
      staleProofs();
    });
    expect(received).toContain('"proof_required"');
    const { items } = await daemon.ok("GET", "/v1/orgs/self/keys");
    expect(items.map(({ name }: Json) => name)).not.toContain("too late");
  });
});

describe("a session of any role", () => {
  test("neither sees nor removes the organization's public SSH keys", async () => {
    const { ssh_key_id } = await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: SSH_KEY });
    for (const visitor of [await member("member"), owner]) {
      for (const [method, path] of [
        ["GET", "/v1/orgs/self/ssh-keys"],
        ["DELETE", `/v1/orgs/self/ssh-keys/${ssh_key_id}`],
      ] as const) {
        expect((await visitor.api(method, path)).body.code).toBe("hub_is_read_only");
      }
    }
    await daemon.ok("DELETE", `/v1/orgs/self/ssh-keys/${ssh_key_id}`);
  });
});

describe.each([
  ["removed", async (user_id: string) => await owner.api("DELETE", `/v1/orgs/self/members/${user_id}`)],
  [
    "made a viewer",
    async (user_id: string) => await owner.api("PATCH", `/v1/orgs/self/members/${user_id}`, { role: "viewer" }),
  ],
] as const)("an admin who is %s", (_, end) => {
  test("does not regain access by links, by keys that keys have made, or by SSH keys", async () => {
    const admin = await member("admin");
    const user_id = await idOf(admin);
    const path = await invite(admin, "admin");
    const first = (await admin.api("POST", "/v1/orgs/self/keys", { name: "first" })).body;
    const second = (await asKey(first.key, "POST", "/v1/orgs/self/keys", { name: "second" })).body;
    const ssh = (await asKey(second.key, "POST", "/v1/orgs/self/ssh-keys", { public_key: SSH_KEY })).body;
    expect(ssh.ssh_key_id).toMatch(/^ssk_/);
    expect((await end(user_id)).status).toBe(200);
    for (const { key } of [first, second]) expect((await asKey(key, "GET", "/v1/me")).status).toBe(401);
    const { items } = await daemon.ok("GET", "/v1/orgs/self/ssh-keys");
    expect(items.map((each: Json) => each.ssh_key_id)).not.toContain(ssh.ssh_key_id);
    const back = await new Visitor(daemon).send(path, {
      name: "back",
      email: "back@example.org",
      password: PASSWORD,
    });
    expect(back.status).toBe(404);
  });

  test("loses open streams within half a second", async () => {
    const admin = await member("admin");
    const user_id = await idOf(admin);
    const stream = await admin.fetch("GET", "/v1/orgs/self/events", { accept: "text/event-stream" });
    const reader = stream.body?.getReader();
    const over = (async () => {
      while (!(await reader?.read().catch(() => ({ done: true })))?.done);
      return performance.now();
    })();
    const endedAt = performance.now();
    await end(user_id);
    expect((await over) - endedAt).toBeLessThan(500);
  });
});

test("a removed person's rotation of another's key ends with them, a later rotation does not", async () => {
  const shared = await daemon.ok("POST", "/v1/orgs/self/keys", { name: "production" });
  const admin = await member("admin");
  const seen = (await admin.api("POST", `/v1/orgs/self/keys/${shared.key_id}/rotate`, { grace_seconds: 0 })).body;
  const later = (await owner.api("POST", `/v1/orgs/self/keys/${seen.key_id}/rotate`, { grace_seconds: 600 })).body;
  await owner.api("DELETE", `/v1/orgs/self/members/${await idOf(admin)}`);
  expect((await asKey(seen.key, "GET", "/v1/me")).status).toBe(401);
  expect((await asKey(later.key, "GET", "/v1/me")).status).toBe(200);
});

test("a member sees a key of theirs that an admin has rotated", async () => {
  const visitor = await member("member");
  const own = (await visitor.api("POST", "/v1/orgs/self/keys", { name: "mine" })).body;
  const next = (await owner.api("POST", `/v1/orgs/self/keys/${own.key_id}/rotate`, {})).body;
  const { items } = (await visitor.api("GET", "/v1/orgs/self/keys")).body;
  expect(items.map(({ key_id }: Json) => key_id).sort()).toEqual([own.key_id, next.key_id].sort());
});

describe("sign-in", () => {
  test("is not throttled by strangers' attempts, in a browser that the user has signed in with before", async () => {
    const victim = await member("member", "victim@example.org");
    const wrong = { email: "victim@example.org", password: "a wrong password" };
    const statuses = [];
    for (let i = 0; i < 6; i++) statuses.push((await new Visitor(daemon).send("/signin", wrong)).status);
    expect(statuses).toContain(429);
    staleProofs();
    await prove(victim);
    expect((await victim.api("GET", "/v1/account")).body.proved_until).not.toBeNull();
    await victim.send("/signout", {});
    expect([...victim.cookies.keys()]).toEqual(["roomd-browser"]);
    expect((await victim.send("/signin", { ...wrong, password: PASSWORD })).status).toBe(303);
  });

  test("by a setup link is possible only for the first user", async () => {
    const other = await TestDaemon.start();
    try {
      const { url } = JSON.parse((await other.cli(["user", "link", "--json"])).stdout);
      await other.cli(["user", "create", "a@example.org", "--name", "A", "--role", "owner"]);
      const form = { token: tokenOf(url), step: "done", name: "B", email: "b@example.org", password: PASSWORD };
      expect((await new Visitor(other).send("/setup", form)).status).toBe(404);
    } finally {
      await other.stop();
    }
  });

  test("by an invitation reveals neither its recipient nor the members", async () => {
    const path = await invite(owner, "viewer", { email: "secret@example.org" });
    expect((await new Visitor(daemon).see(path, VISIT)).text).not.toContain("secret@example.org");
    const open = await invite(owner, "viewer");
    const responses = await Promise.all(
      ["owner@example.org", "nobody@example.org"].map(async (email) => {
        const { status, text } = await new Visitor(daemon).send(open, { name: "", email, password: "x" });
        // A passkey is made for one challenge and one new user each time.
        return [status, text.replaceAll(email, "ADDRESS").replaceAll(/data-options="[^"]*"|usr_\w+/g, "")];
      }),
    );
    expect(responses[0]).toEqual(responses[1]);
    const common = await Promise.all(
      ["owner@example.org", "nobody@example.org"].map(async (email) => {
        const form = { name: "x", email, password: "password1234" };
        return (await new Visitor(daemon).send(open, form)).status;
      }),
    );
    expect(common).toEqual([422, 422]);
  });

  test("by an existing member leaves the invitation for another", async () => {
    const path = await invite(owner, "viewer");
    const again = await owner.send(path, { as: "me" });
    expect([again.status, again.text]).toEqual([409, expect.stringContaining("remains valid")]);
    expect((await owner.see(path, VISIT)).status).toBe(200);
  });

  test("sends no password over plain HTTP to another host", async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const env = { ROOMD_HTTP_BASE_URL: "http://rooms.example.org", ROOMD_HTTP_LISTEN: listen };
    const plain = await TestDaemon.start({ env });
    // Its base URL is the public name; the requests go to its listener.
    plain.url = `http://${listen}`;
    try {
      for (const path of ["/signin", "/setup"]) {
        const page = await new Visitor(plain).see(path, VISIT);
        expect([page.status, page.text]).toEqual([403, expect.stringContaining("TLS required")]);
        expect(page.text).not.toContain("<input");
      }
    } finally {
      await plain.stop();
    }
  });
});

describe("behind a proxy", () => {
  const FAILS = 6;
  const tries = async (on: TestDaemon, of: (n: number) => string) => {
    const statuses: number[] = [];
    for (let n = 0; n < FAILS; n++) {
      const form = { email: `nobody${n}@example.org`, password: "x" };
      statuses.push((await new Visitor(on).send("/signin", form, { "x-forwarded-for": of(n) })).status);
    }
    return statuses;
  };
  const env = { ROOMD_LIMITS_FAILED_LOGINS: "3" };

  test("that is trusted each client has its own limits, and is audited with its address", async () => {
    await using proxied = await TestDaemon.start({ env: { ...env, ROOMD_HTTP_TRUSTED_PROXIES: "127.0.0.1" } });
    expect(new Set(await tries(proxied, (n) => `198.51.100.9, 203.0.113.${n}`))).toEqual(new Set([401]));
    expect(await tries(proxied, (n) => `198.51.100.${n}, 203.0.113.7`)).toEqual([401, 401, 401, 429, 429, 429]);
    const { stdout } = await proxied.cli(["audit", "list", "--host", "--event", "auth.failed", "--json"]);
    expect(JSON.parse(stdout).items.map(({ ip }: Json) => ip)).toContain("203.0.113.7");
  });

  test("that is not trusted, the forwarded address is ignored", async () => {
    await using plain = await TestDaemon.start({ env });
    expect(await tries(plain, (n) => `203.0.113.${n}`)).toEqual([401, 401, 401, 429, 429, 429]);
  });
});

test("a form value that was not offered creates no key", async () => {
  const page = await owner.see("/account/keys");
  const form = { ...formWith(page.text, "do", "make"), name: "x" };
  for (const wrong of [
    { may: "all", ends: "abc" },
    { may: "", ends: "" },
    { may: "everything", ends: "604800" },
  ]) {
    expect((await owner.send("/account/keys", { ...form, ...wrong })).status).toBe(422);
  }
  const { items } = (await owner.api("GET", "/v1/orgs/self/keys")).body;
  expect(items.map(({ name }: Json) => name)).not.toContain("x");
});

test("a name has no invisible characters, and an address is normalized, through every path", async () => {
  const path = await invite(owner, "viewer");
  const person = { name: "a\u0007b", email: "name@example.org", password: PASSWORD };
  expect((await new Visitor(daemon).send(path, person)).status).toBe(422);
  expect((await owner.api("PATCH", "/v1/account", { name: "a\nb" })).status).toBe(422);
  const { status, stderr } = await daemon.cli(["user", "create", "a b", "--name", "x", "--org", daemon.orgId]);
  expect([status, stderr]).toEqual([1, expect.stringContaining("e-mail")]);
});
