/** The type of an ID, and the callers with permission to resolve it: over the API, the command line and /go/ID of the web. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Visitor } from "../../harness/browser/visitor.ts";
import { type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { idOf as idOfPerson, PASSWORD, People } from "../../harness/people.ts";
import { bearer, makeKey, makeOrg } from "../calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

let daemon: TestDaemon;
let other: Record<string, string>;
let people: People;
/** IDs by type; each belongs to the organization. */
const ids: Record<string, string> = {};
const [ROOM, AGENT, LABEL] = ["build-42", "worker", "web-k3vq7m2xdw5tzjh4rnplc6ayse"];

const ask = (id: string, headers: Record<string, string> = {}) =>
  daemon.api("GET", `/v1/locate/${encodeURIComponent(id)}`, undefined, headers);

/** Rows that only guests create. */
function leave({ sandbox_id, org_id, room_uid }: Json): void {
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  rows.run(
    `INSERT INTO ports (label, sandbox_id, port, visibility, org_id, room_uid, agent_id, created_at)
     SELECT ?, sandbox_id, 8000, 'private', org_id, room_uid, agent_id, created_at FROM sandboxes WHERE sandbox_id = ?`,
    [LABEL, sandbox_id],
  );
  const seq = Number(
    rows.query<{ seq: number }, [string]>("SELECT seq FROM audit_heads WHERE org_key = ?").get(org_id)?.seq,
  );
  const insert = rows.prepare(
    `INSERT INTO audit (org_key, seq, audit_id, event, outcome, at, org_id, room_id, room_uid, agent_id, sandbox_id,
       actor_type, actor_id, actor_name, source, details, prev_hash, hash)
     VALUES (?, ?, ?, ?, 'success', '2026-01-31T12:00:00.000Z', ?, ?, ?, ?, ?, 'key', 'kid_1', 'x', 'rest', ?, '', ?)`,
  );
  const left = [
    ["exec.started", { exec_id: "exe_01" }],
    ["exec.finished", { exec_id: "make-1" }],
    ["exec.terminal_created", { terminal_id: "ter_01" }],
  ] as const;
  for (const [index, [event, details]] of left.entries()) {
    const at = seq + 1 + index;
    const about = [org_id, ROOM, room_uid, AGENT, sandbox_id, JSON.stringify(details)];
    insert.run(org_id, at, `evt_left${index}`, event, ...about, `hash ${index}`);
    rows.run("UPDATE audit_heads SET seq = ?, hash = ? WHERE org_key = ?", [at, `hash ${index}`, org_id]);
  }
  rows.close();
}

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: NO_GUESTS,
  });
  describeTemplate(daemon);
  const room = await daemon.room(ROOM);
  // It fails, for want of a QEMU, and leaves its row.
  const body = { agent_id: AGENT, guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB };
  await daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/from-template`, body, {
    "x-request-id": "req_made",
  });
  const sandbox = await untilState(daemon, ROOM, AGENT, "failed");
  await daemon.ok("GET", `/v1/rooms/${ROOM}/messages?agent_id=planner`);
  const message = { source: "planner", destination: "planner", payload: 1 };
  const sent = await daemon.ok("POST", `/v1/rooms/${ROOM}/messages`, message);
  await daemon.ok("POST", `/v1/rooms/${ROOM}/barriers`, {
    ...{ barrier_id: "built", agent_id: "planner", parties: 2, timeout_ms: 0 },
  });
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=sandbox.&request_id=req_made");
  const { key_id, org_id } = await daemon.ok("GET", "/v1/me");
  leave({ ...sandbox, org_id, room_uid: room.room_uid });
  Object.assign(ids, {
    ...{ room: ROOM, room_uid: room.room_uid, sandbox: sandbox.sandbox_id, agent: `${ROOM}/${AGENT}` },
    ...{ planner: `${ROOM}/planner`, barrier: `${ROOM}/built`, message: sent.message_id, port: LABEL },
    ...{ execution: "exe_01", named: "make-1", terminal: "ter_01", audit: items[0].audit_id, request: "req_made" },
    ...{ key: key_id, org: org_id },
  });
  other = bearer((await makeOrg(daemon, "other")).api_key);
  people = await People.first(daemon);
});
afterAll(() => daemon.stop());

const IN_ROOM = { room_id: ROOM, agent_id: null };
const OF_AGENT = { room_id: ROOM, agent_id: AGENT };
const NOWHERE = { room_id: null, agent_id: null };
const FOUND: [what: string, type: string, path: string, where: Json][] = [
  ["room", "room", `/rooms/${ROOM}`, IN_ROOM],
  ["room_uid", "room", `/rooms/${ROOM}`, IN_ROOM],
  ["sandbox", "sandbox", `/rooms/${ROOM}/agents/${AGENT}`, OF_AGENT],
  ["agent", "agent", `/rooms/${ROOM}/agents/${AGENT}`, OF_AGENT],
  ["planner", "agent", `/rooms/${ROOM}/agents/planner`, { room_id: ROOM, agent_id: "planner" }],
  ["barrier", "barrier", `/rooms/${ROOM}/waits?barrier=built`, IN_ROOM],
  ["message", "message", `/rooms/${ROOM}/messages?message=ID`, IN_ROOM],
  ["port", "port", `/rooms/${ROOM}/ports?label=ID`, OF_AGENT],
  ["execution", "execution", `/rooms/${ROOM}/agents/${AGENT}/commands?exec=ID`, OF_AGENT],
  ["named", "execution", `/rooms/${ROOM}/agents/${AGENT}/commands?exec=ID`, OF_AGENT],
  ["terminal", "terminal", `/rooms/${ROOM}/agents/${AGENT}/terminal?terminal=ID`, OF_AGENT],
  ["audit", "audit", "/audit?audit_id=ID", { room_id: ROOM }],
  ["request", "request", "/audit?request_id=ID", { room_id: ROOM }],
  ["key", "key", "/account/keys", NOWHERE],
  ["org", "org", "/account", NOWHERE],
];
const idOf = (kind: string) => String(ids[kind]);
const unfound = async (id: string, headers: Record<string, string>) => {
  const { status, body } = await ask(id, headers);
  return JSON.stringify({ status, ...body, request_id: "" }).replaceAll(id, "ID");
};

describe("the ID", () => {
  test.each(FOUND)("of a %s is resolved to its type and path", async (kind, type, path, fields) => {
    const id = idOf(kind);
    const answer = await ask(id);
    expect(answer).toMatchObject({ status: 200, body: { type, path: path.replace("ID", id), ...fields } });
  });

  test.each(FOUND)("of a %s is answered to another organization like an ID that never existed", async (kind) => {
    // Its own room of that name would be its own.
    const never = await unfound("never-was", other);
    expect(await unfound(idOf(kind), other)).toBe(never);
    expect(never).toContain("id_not_found");
  });

  test("of the host's template is resolved for every organization", async () => {
    expect((await ask("default", other)).body).toMatchObject({ type: "template", path: "/prompts" });
  });

  test.each([["never-was"], ["../etc"], ["a/b/c"], ["/"], ["sbx_"], ["x\u0000y"], ["%"], ["é".repeat(100)]])(
    "%j is not found",
    async (id) => {
      expect(await ask(id)).toMatchObject({ status: 404, body: { code: "id_not_found" } });
    },
  );

  test("is refused as too long above the limit", async () => {
    expect((await ask("x".repeat(258))).status).toBe(422);
  });

  test("requires a key, and is audited with its type", async () => {
    expect((await fetch(`${daemon.url}/v1/locate/${ROOM}`)).status).toBe(401);
    await ask(ROOM, { "x-request-id": "req_located" });
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?request_id=req_located");
    expect(items).toMatchObject([{ event: "id.located", room_id: ROOM, details: { id: ROOM, type: "room" } }]);
  });
});

describe("a bound key", () => {
  const ELSEWHERE = ["room", "room_uid", "sandbox", "agent", "planner", "barrier", "message", "port", "execution"];
  const RECORDS = ["named", "terminal", "audit", "request"];

  test.each([...ELSEWHERE, ...RECORDS])(
    "of another room gets for a %s the same answer as for an ID that never existed",
    async (kind) => {
      const headers = bearer((await makeKey(daemon, { rooms: ["elsewhere"] })).key);
      expect(await unfound(idOf(kind), headers)).toBe(await unfound("never-was", headers));
    },
  );

  test("of this room resolves the IDs in it", async () => {
    const headers = bearer((await makeKey(daemon, { rooms: [ROOM] })).key);
    for (const kind of [...ELSEWHERE, ...RECORDS])
      expect([kind, (await ask(idOf(kind), headers)).status]).toEqual([kind, 200]);
    expect((await ask(idOf("key"), headers)).status).toBe(404);
  });

  test("of an agent resolves its own IDs, and none of another agent", async () => {
    const own = bearer((await makeKey(daemon, { agent: AGENT })).key);
    const foreign = bearer((await makeKey(daemon, { agent: "somebody" })).key);
    for (const kind of ["sandbox", "agent", "port", "execution", "terminal"]) {
      expect([kind, (await ask(idOf(kind), own)).status]).toEqual([kind, 200]);
      expect(await unfound(idOf(kind), foreign)).toBe(await unfound("never-was", foreign));
    }
    expect((await ask(idOf("message"), own)).status).toBe(404);
    expect((await ask(idOf("message"), bearer((await makeKey(daemon, { agent: "planner" })).key))).status).toBe(200);
  });

  test("resolves only IDs that its scopes can read", async () => {
    const { key, key_id } = await makeKey(daemon, { scopes: ["usage:read"] });
    const headers = bearer(key);
    const never = await unfound("never-was", headers);
    for (const [kind] of FOUND) {
      if (kind !== "org") expect([kind, await unfound(idOf(kind), headers)]).toEqual([kind, never]);
    }
    expect((await ask(key_id, headers)).body).toMatchObject({ type: "key" });
    expect((await ask(idOf("org"), headers)).status).toBe(200);
  });
});

describe("an account ID", () => {
  let member: Visitor;
  let foreign: Visitor;
  /** IDs of the owner and of the organization, with their type and page. */
  let theirs: [id: string, type: string, path: string][];

  beforeAll(async () => {
    member = await people.member("viewer");
    foreign = await people.foreign();
    const { owner } = people;
    const { items } = (await owner.api("GET", "/v1/account/sessions")).body;
    const invitation = (await owner.api("POST", "/v1/orgs/self/invitations", { role: "viewer" })).body;
    const org = idOf("org");
    const rows = new Database(join(daemon.dataDir, "roomd.db"));
    rows.run("PRAGMA busy_timeout = 5000");
    const me = await idOfPerson(owner);
    const at = "2026-01-31T12:00:00.000Z";
    rows.run("INSERT INTO credit_ledger VALUES ('cre_1', ?, ?, 'grant', 1, 'a gift', 'gift')", [org, at]);
    rows.run("INSERT INTO passkeys VALUES ('pky_1', ?, 'c', 'k', 0, '', 'localhost', 'laptop', 0, ?, NULL)", [me, at]);
    rows.run("INSERT INTO identities VALUES ('idn_1', ?, 'https://id.example', 's', 'ada', ?, NULL)", [me, at]);
    rows.run("INSERT INTO oauth_grants (key_id, user_id, client_id, audience) VALUES ('kid_app', ?, 'oap_1', 'mcp')", [
      me,
    ]);
    rows.close();
    theirs = [
      [items[0].session_id, "session", "/account/sessions"],
      ["pky_1", "passkey", "/account/ways"],
      ["idn_1", "identity", "/account/ways"],
      ["oap_1", "application", "/account/applications"],
      ["kid_app", "application", "/account/applications"],
      [invitation.invitation_id, "invitation", "/org/members"],
    ];
  });

  const responseText = async (visitor: Visitor, id: string) => {
    const { status, body } = await visitor.api("GET", `/v1/locate/${id}`);
    return JSON.stringify({ status, ...body, request_id: "" }).replaceAll(id, "ID");
  };

  test("leads its person to their own account, and others to the member list", async () => {
    const [owner, other] = [await idOfPerson(people.owner), await idOfPerson(member)];
    const see = async (visitor: Visitor, id: string) => (await visitor.see(`/go/${id}`)).to;
    expect(await see(people.owner, owner)).toBe("/account");
    expect(await see(member, owner)).toBe("/org/members");
    expect(await see(people.owner, other)).toBe("/org/members");
    expect(await responseText(foreign, owner)).toBe(await responseText(foreign, "usr_never"));
    expect((await ask(owner)).body).toMatchObject({ type: "member", path: "/org/members" });
    const blind = bearer((await makeKey(daemon, { scopes: ["rooms:read"] })).key);
    expect(await unfound(owner, blind)).toBe(await unfound("never-was", blind));
  });

  test("of an own object leads its person to it, and is not found for other callers", async () => {
    for (const [id, type, path] of theirs) {
      expect((await people.owner.api("GET", `/v1/locate/${id}`)).body).toMatchObject({ id, type, path });
      expect((await people.owner.see(`/go/${id}`)).to).toBe(path);
      for (const visitor of [member, foreign])
        expect(await responseText(visitor, id)).toBe(await responseText(visitor, "never-was"));
      expect(await unfound(id, {})).toBe(await unfound("never-was", {}));
    }
  });

  test("of a credit entry leads readers of usage to it", async () => {
    expect((await member.see("/go/cre_1")).to).toBe("/usage");
    expect((await ask("cre_1")).body).toMatchObject({ type: "credit", path: "/usage", ...NOWHERE });
    expect(await unfound("cre_1", other)).toBe(await unfound("never-was", other));
    const bound = bearer((await makeKey(daemon, { rooms: [ROOM] })).key);
    expect(await unfound("cre_1", bound)).toBe(await unfound("never-was", bound));
  });
});

test("of SSH access leads to its object: a key to its records, a password to its sandbox", async () => {
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  const columns = rows.query<{ name: string; notnull: number }, []>("PRAGMA table_info(ssh_keys)").all();
  const known: Json = { ssh_key_id: "ssk_1", org_id: idOf("org") };
  const names = columns.filter(({ name, notnull }) => notnull || known[name]).map(({ name }) => name);
  const marks = names.map(() => "?").join(", ");
  rows.run(
    `INSERT INTO ssh_keys (${names.join(", ")}) VALUES (${marks})`,
    names.map((name) => known[name] ?? "x"),
  );
  rows.run("INSERT INTO ssh_accesses VALUES ('ssa_1', ?, 'x', '{}', 'worker', 'x', '2999-01-31T12:00:00.000Z')", [
    idOf("sandbox"),
  ]);
  rows.close();
  expect((await ask("ssk_1")).body).toMatchObject({ type: "ssh_key", path: "/audit?event=key.ssh_", ...NOWHERE });
  const path = `/rooms/${ROOM}/agents/${AGENT}`;
  expect((await ask("ssa_1")).body).toMatchObject({ type: "ssh_access", path, ...OF_AGENT });
  for (const id of ["ssk_1", "ssa_1"]) expect(await unfound(id, other)).toBe(await unfound("never-was", other));
  expect((await people.owner.see("/go/ssa_1")).to).toBe(path);
});

describe("roomd open", () => {
  test("prints the address for each kind of ID, and an error for unknown ones", async () => {
    const open = async (...words: string[]) => (await daemon.cli(["open", ...words])).stdout.trim();
    expect(await open()).toBe(`${daemon.url}/`);
    expect(await open(ROOM)).toBe(`${daemon.url}/rooms/${ROOM}`);
    expect(await open(idOf("agent"))).toBe(`${daemon.url}/rooms/${ROOM}/agents/${AGENT}`);
    expect(JSON.parse(await open(idOf("message"), "--json"))).toEqual({
      url: `${daemon.url}/rooms/${ROOM}/messages?message=${idOf("message")}`,
    });
  });

  test("explains what to do about an unknown ID", async () => {
    const { status, stdout, stderr } = await daemon.cli(["open", "never-was"]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("room list");
  });
});

describe("/go/ID", () => {
  const go = (id: string) => `/go/${encodeURIComponent(id)}`;

  /** Target of a sign-in without a requested page. */
  const home = async () => {
    const { email } = (await people.owner.api("GET", "/v1/account")).body;
    return (await new Visitor(daemon).send("/signin", { email, password: PASSWORD })).to;
  };

  test.each([["room"], ["sandbox"], ["agent"], ["message"], ["execution"], ["audit"], ["key"]])(
    "redirects a signed-in person to the page of a %s",
    async (kind) => {
      const { path } = (await ask(idOf(kind))).body;
      expect(await people.owner.see(go(idOf(kind)))).toMatchObject({ status: 303, to: path });
    },
  );

  test("of an unknown ID explains that, and has links", async () => {
    const page = await people.owner.see(go("never-was"));
    expect(page.status).toBe(404);
    expect(page.text).toContain('href="/rooms"');
    expect((await (await people.foreign()).see(go(idOf("sandbox")))).status).toBe(404);
  });

  test("returns once after sign-in", async () => {
    const { email } = (await people.owner.api("GET", "/v1/account")).body;
    const visitor = new Visitor(daemon);
    expect(await visitor.see(go(idOf("agent")))).toMatchObject({ status: 303, to: "/signin" });
    const signedIn = await visitor.send("/signin", { email, password: PASSWORD });
    expect(signedIn).toMatchObject({ status: 303, to: go(idOf("agent")) });
    expect(await visitor.see(String(signedIn.to))).toMatchObject({ to: `/rooms/${ROOM}/agents/${AGENT}` });
    await visitor.send("/signout", {});
    expect((await visitor.send("/signin", { email, password: PASSWORD })).to).toBe(await home());
  });

  test.each(["/go/../signout", "//evil.example/", "/go/a/b", "/go/a?next=//evil.example", "/account", "/go/a\r\nx: y"])(
    "does not redirect to %j from a forged cookie",
    async (place) => {
      const { email } = (await people.owner.api("GET", "/v1/account")).body;
      const visitor = new Visitor(daemon);
      await visitor.see(go(ROOM));
      const [name = ""] = [...visitor.cookies.keys()].filter((each) => each.endsWith("-asked"));
      visitor.cookies.set(name, Buffer.from(place).toString("base64url"));
      expect((await visitor.send("/signin", { email, password: PASSWORD })).to).toBe(await home());
    },
  );
});
