/** Stored personal data: all of it is shown, without credentials, and nothing names a forgotten person. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Visitor } from "../../harness/browser/visitor.ts";
import { Application } from "../../harness/clients/application.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { idOf, invite, PASSWORD, People } from "../../harness/people.ts";
import { bearer, run } from "../calls.ts";

let daemon: TestDaemon;
let people: People;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
});
afterAll(() => daemon.stop());

const nameOf = (email: string) => `Madame ${email.split("@")[0]}`;
const EMAIL = "zerlina.quist@example.org";

/** A person with some activity: a key, a rename, an invitation, two sessions. */
async function busy(email = EMAIL) {
  const visitor = new Visitor(daemon);
  await people.prove(people.owner);
  const link = await invite(people.owner, "admin", { email });
  await visitor.send(link, { name: nameOf(email), email, password: PASSWORD });
  await visitor.send("/account", { do: "name", name: `${nameOf(email)} II` });
  const { key_id, key } = (await visitor.api("POST", "/v1/orgs/self/keys", { name: "ci" })).body;
  const invited = await invite(visitor, "viewer");
  const application = await new Application(daemon, visitor).connect();
  const elsewhere = new Visitor(daemon);
  await elsewhere.send("/signin", { email, password: PASSWORD });
  await visitor.send("/signin", { email, password: "not the password" });
  people.sql(
    (database) =>
      void database.prepare("UPDATE users SET verified_at = ? WHERE email = ?").run(new Date().toISOString(), email),
  );
  // Another invitation, which stays open.
  await invite(people.owner, "viewer", { email });
  return { visitor, application, elsewhere, key_id, key, invited, user_id: await idOf(visitor) };
}

/** Every text of every table that has it. */
function tablesWith(text: string): string[] {
  return people.sql((database) => {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as Json[];
    return tables.flatMap(({ name }) => {
      const rows = database.prepare(`SELECT * FROM ${name}`).all();
      return JSON.stringify(rows).toLowerCase().includes(text.toLowerCase()) ? [name as string] : [];
    });
  });
}

test("a person's data are shown completely to the person and the operator, without credentials", async () => {
  const { visitor, key_id, user_id } = await busy("shown@example.org");
  const own = (await visitor.api("GET", "/v1/account/export")).body;
  expect(own).toMatchObject({
    user_id,
    kept: {
      users: [{ email: "shown@example.org" }],
      api_keys: expect.arrayContaining([expect.objectContaining({ key_id })]),
      oauth_grants: [{ client_id: expect.any(String) }],
    },
  });
  expect(own.kept.sessions).toHaveLength(2);
  const made = await run(daemon, "user", "export", "shown@example.org");
  expect(made.kept).toEqual(own.kept);
  expect(made.records.map(({ event }: Json) => event)).toEqual(
    expect.arrayContaining(["user.created", "member.added", "key.created", "auth.signed_in", "user.exported"]),
  );
  for (const text of [JSON.stringify(own), JSON.stringify(made)]) {
    expect(text).not.toMatch(/argon2|sha256|key-\w{43}/);
    expect(text).not.toContain(visitor.session);
  }
  people.staleProofs();
  expect((await visitor.api("GET", "/v1/account/export")).body.code).toBe("proof_required");
  const page = await visitor.send("/account/data", { do: "export", proof: PASSWORD });
  expect(page.text).toContain("&#34;shown@example.org&#34;");
});

test("a person with an unverified address neither sees nor deletes what others have sent to it", async () => {
  const email = "claimed@example.org";
  await people.prove(people.owner);
  const claimer = await people.member("viewer", { email });
  const foreign = await people.foreign();
  const link = await invite(foreign, "viewer", { email });
  expect((await claimer.api("GET", "/v1/account/export")).body.kept.links).toEqual([]);
  expect((await claimer.send("/account/data", { do: "forget", email })).to).toBe("/signin");
  expect((await new Visitor(daemon).see(link)).status).toBe(200);
});

test.each(["by the operator", "by the person"])(
  "a person's data are deleted %s, with all access that was granted",
  async (how) => {
    const email = how === "by the operator" ? EMAIL : "zerlina.again@example.org";
    const { visitor, application, elsewhere, key, invited, user_id } = await busy(email);
    const stream = await elsewhere.fetch("GET", "/v1/orgs/self/events", { accept: "text/event-stream" });
    const reader = stream.body?.getReader();
    expect(tablesWith(email)).toEqual(expect.arrayContaining(["users", "links"]));
    if (how === "by the operator") {
      expect(await run(daemon, "user", "forget", email)).toMatchObject({
        user_id,
        organizations_left: 1,
        keys_revoked: 2,
      });
    } else {
      const wrong = await visitor.api("DELETE", "/v1/account?email=other@example.org");
      expect(wrong).toMatchObject({ status: 422, body: { errors: [{ field: "email" }] } });
      expect(await visitor.send("/account/data", { do: "forget", email })).toMatchObject({
        status: 303,
        to: "/signin",
      });
      expect(visitor.session).toBe("");
    }
    const goneAt = performance.now();
    while (!(await reader?.read().catch(() => ({ done: true })))?.done);
    expect(performance.now() - goneAt).toBeLessThan(600);
    expect((await elsewhere.api("GET", "/v1/account")).body.code).toBe("session_ended");
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).body.code).toBe("invalid_api_key");
    await expect(application.listTools()).rejects.toThrow();
    expect((await new Visitor(daemon).see(invited)).status).toBe(404);
    expect([tablesWith(nameOf(email)), tablesWith(email)]).toEqual([[], []]);
    // The ID remains in audit records, and in resources of the organization.
    expect(tablesWith(user_id).sort()).toEqual(expect.arrayContaining(["api_keys", "audit"]));
    for (const table of ["users", "memberships", "sessions", "browsers", "links", "oauth_grants"]) {
      expect(tablesWith(user_id)).not.toContain(table);
    }
    expect((await daemon.cli(["audit", "verify", "--host"])).status).toBe(0);
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
    expect((await daemon.cli(["user", "forget", email])).status).toBe(1);
    // The address is free, and may be used again.
    expect((await people.member("viewer", { email })).session).not.toBe("");
    await run(daemon, "user", "forget", email);
  },
);

test("a person's data stay while an organization would lose its last owner, and are deleted once it has ended", async () => {
  const owner = await people.foreign("Lonely");
  const { email, org_id } = (await owner.api("GET", "/v1/account")).body;
  const refused = await daemon.cli(["user", "forget", email]);
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("Lonely")]);
  const own = await owner.api("DELETE", `/v1/account?email=${email}`);
  expect(own.body).toMatchObject({ code: "last_owner", details: { org_ids: [org_id] } });
  await run(daemon, "org", "delete", org_id, "--name", "Lonely");
  expect(await run(daemon, "user", "forget", email)).toMatchObject({ organizations_left: 0 });
});
