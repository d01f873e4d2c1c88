/** Deletion of an organization: permission, immediate effects, resumption after a crash, and retained data. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Visitor } from "../../harness/browser/visitor.ts";
import { Application } from "../../harness/clients/application.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until as untilSo } from "../../harness/guests.ts";
import { idOf, invite, PASSWORD, People } from "../../harness/people.ts";
import { sampled } from "../../harness/sampled.ts";
import { bearer, run, until } from "../calls.ts";

let daemon: TestDaemon;
let people: People;
let count = 0;

/** An organization with an owner, a key of the owner, and `rooms` rooms with a file on each drive. */
async function made(rooms = 2) {
  const name = `Acme ${++count}`;
  const owner = await people.foreign(name);
  const { org_id } = (await owner.api("GET", "/v1/account")).body;
  const { key } = (await owner.api("POST", "/v1/orgs/self/keys", { name: "all" })).body;
  const asKey = (method: string, path: string, body?: unknown) => daemon.api(method, path, body, bearer(key));
  const room_uids: string[] = [];
  for (let n = 0; n < rooms; n++) {
    room_uids.push((await asKey("POST", "/v1/rooms", { room_id: `r${n}` })).body.room_uid);
    await asKey("POST", `/v1/rooms/r${n}/drive/write`, { path: "/notes.txt", content: "here" });
  }
  const end = (visitor: Visitor) => visitor.api("DELETE", `/v1/orgs/self?org_name=${encodeURIComponent(name)}`);
  return { name, owner, org_id, key, asKey, room_uids, end };
}
const stateOf = (orgId: string): Json =>
  people.sql((database) => database.prepare("SELECT * FROM orgs WHERE org_id = ?").get(orgId) as Json);
const untilEnded = (orgId: string) =>
  until(
    async () => stateOf(orgId).ended_at,
    (at) => at !== null,
  );
/** Directories of rooms, and of drives that are kept. */
const drives = (): string[] =>
  ["rooms", "retired"].flatMap((name) => {
    const directory = join(daemon.dataDir, name);
    return existsSync(directory) ? readdirSync(directory) : [];
  });
const verified = async () => (await daemon.cli(["audit", "verify", "--host", "--json"])).status;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
});
afterAll(() => daemon.stop());
beforeEach(() => {
  daemon.env[FAULT_VARIABLE] = "";
});

describe("an organization", () => {
  test("is ended by an owner with a fresh proof and its name, and by no other role", async () => {
    const { owner, end, org_id, name } = await made(0);
    const admin = await people.member("admin", { by: owner });
    expect((await end(admin)).body).toMatchObject({ code: "insufficient_scope", details: { required: "owner" } });
    const wrong = await owner.api("DELETE", "/v1/orgs/self?org_name=Acme");
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ field: "org_name" }] } });
    expect((await owner.api("DELETE", `/v1/orgs/${daemon.orgId}?org_name=default`)).body.code).toBe("org_not_found");
    people.staleProofs();
    expect((await end(owner)).body.code).toBe("proof_required");
    const page = await owner.send("/org/end", { org_name: name });
    expect(page).toMatchObject({ status: 403, text: expect.stringContaining('name="proof"') });
    expect(stateOf(org_id).ending_at).toBeNull();
  });

  test("ends with its keys and members immediately, then its rooms and drives, and frees its name", async () => {
    const { name, owner, org_id, key, asKey, room_uids, end } = await made();
    const member = await people.member("member", { by: owner });
    const link = await invite(owner, "viewer");
    await asKey("DELETE", "/v1/rooms/r0");
    expect(drives()).toEqual(expect.arrayContaining(room_uids));
    const client = await new Application(daemon, owner).connect();
    const response = await end(owner);
    expect(response).toMatchObject({
      status: 202,
      body: { org_id, state: "ending", keys_revoked: 3, members_removed: 1 },
    });
    await expect(client.listTools()).rejects.toThrow();
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).body.code).toBe("invalid_api_key");
    expect((await member.api("GET", "/v1/account")).body.code).toBe("session_ended");
    expect((await member.see(link)).status).toBe(404);
    await untilEnded(org_id);
    for (const uid of room_uids) expect(drives()).not.toContain(uid);
    expect((await owner.api("GET", "/v1/account")).body.code).toBe("session_ended");
    const signedIn = await owner.send("/signin", { email: "nobody", password: PASSWORD });
    expect(signedIn.status).toBe(401);
    expect((await daemon.cli(["org", "list"])).stdout).not.toContain(org_id);
    expect((await daemon.cli(["org", "create", "--name", name])).status).toBe(0);
    const events: Json[] = people.sql((database) =>
      database.prepare("SELECT event, actor_type FROM audit WHERE org_id = ? ORDER BY seq").all(org_id),
    ) as Json[];
    expect(events.slice(-1)).toEqual([{ event: "org.ended", actor_type: "system" }]);
    expect(events).toContainEqual({ event: "org.ending", actor_type: "user" });
    expect(await verified()).toBe(0);
  });

  test("that is ending rejects changes, shows its progress, and cannot be ended again", async () => {
    const { name, owner, org_id, end } = await made();
    await daemon.end("SIGTERM");
    daemon.env[FAULT_VARIABLE] = "room.emptied=stall";
    await daemon.serve();
    expect((await owner.submit("/org/end", { org_name: name })).status).toBe(200);
    const page = await owner.see("/org/end");
    expect([page.text, page.headers.get("refresh")]).toEqual([expect.stringContaining("<b>2 rooms</b>"), "2"]);
    expect((await end(owner)).body.code).toBe("org_not_found");
    expect((await owner.api("POST", "/v1/orgs/self/keys", { name: "late" })).body.code).toBe("org_not_found");
    expect((await owner.api("POST", "/v1/orgs/self/invitations", { role: "owner" })).body.code).toBe("org_not_found");
    expect((await daemon.cli(["key", "create", "--org", org_id, "--name", "late"])).status).toBe(1);
    daemon.env[FAULT_VARIABLE] = "";
    await daemon.restart();
    await untilEnded(org_id);
  });

  // Records are written within commits: at the first one the deletion has not started, at the others it is incomplete.
  test.each(
    sampled("kills amid the end of an organization", [
      "audit.recorded",
      "audit.recorded@2",
      "audit.recorded@4",
      "audit.recorded@5",
      "room.emptied",
      "room.retired@2",
    ]),
  )(
    "continues ending after a kill at %s",
    async (point) => {
      const { owner, org_id, end, room_uids } = await made(3);
      await daemon.end("SIGTERM");
      const [name, nth] = point.split("@");
      daemon.env[FAULT_VARIABLE] = `${name}=kill${nth ? `@${nth}` : ""}`;
      await daemon.serve();
      await end(owner).catch(() => null);
      await untilSo("the daemon is killed", () => !daemon.runs);
      daemon.env[FAULT_VARIABLE] = "";
      await daemon.serve();
      // An unacknowledged deletion may not have started.
      if (stateOf(org_id).ending_at === null) expect((await end(owner)).status).toBe(202);
      await untilEnded(org_id);
      for (const uid of room_uids) expect(drives()).not.toContain(uid);
      const open: Json = people.sql((database) =>
        database
          .prepare(
            `SELECT (SELECT count(*) FROM rooms WHERE org_id = ?1 AND state <> 'destroyed') AS rooms,
               (SELECT count(*) FROM memberships WHERE org_id = ?1) AS members,
               (SELECT count(*) FROM sessions WHERE org_id = ?1 AND ended_at IS NULL) AS sessions,
               (SELECT count(*) FROM api_keys WHERE org_id = ?1) AS keys`,
          )
          .get(org_id),
      ) as Json;
      expect(open).toEqual({ rooms: 0, members: 0, sessions: 0, keys: 0 });
      expect(await verified()).toBe(0);
    },
    60_000,
  );
});

describe("roomd org delete", () => {
  test("requires the name, waits until everything is removed, and reports it", async () => {
    const { name, org_id, key } = await made();
    expect((await daemon.cli(["org", "delete", org_id, "--name", "Acme"])).status).toBe(1);
    expect(await run(daemon, "org", "delete", org_id, "--name", name)).toMatchObject({ org_id, state: "ended" });
    const granted = await daemon.cli(["org", "credits", org_id, "--grant", "1", "--json"]);
    expect([granted.status, JSON.parse(granted.stderr).code]).toEqual([1, "org_not_found"]);
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).status).toBe(401);
    expect((await daemon.cli(["org", "delete", org_id, "--name", name])).status).toBe(1);
  });
});

test("the last owner must appoint another or end the organization to leave; other members leave on their own", async () => {
  const { owner } = await made(0);
  const member = await people.member("member", { by: owner });
  const refused = await owner.api("DELETE", "/v1/orgs/self/members/self");
  expect(refused.body.code).toBe("last_owner");
  const left = await member.send("/org/members", { do: "remove", user_id: await idOf(member) });
  expect([left.status, left.to, left.text]).toEqual([303, "/signin", ""]);
  expect((await member.api("GET", "/v1/account")).body.code).toBe("session_ended");
});
