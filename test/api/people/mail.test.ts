/** E-mails: sign-up in each mode, account recovery, address verification, invitations, and delivery to a mail server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LETTER } from "../../../daemon/edge/web/handlers/sign-up.ts";
import { linkIn, MailServer } from "../../fixtures/mail-server.ts";
import { type PageSeen, Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { until } from "../../harness/guests.ts";
import { issue } from "../../harness/issued-certificate.ts";
import { PASSWORD, People } from "../../harness/people.ts";

let mail: MailServer;
let daemon: TestDaemon;
let people: People;

async function startWith(env: Record<string, string> = {}): Promise<TestDaemon> {
  return await TestDaemon.start({ env: { ...mail.env, ROOMD_SIGNUP_PER_HOUR: "0", ...env } });
}

const rows = (sql: string): Json[] => people.sql((database) => database.prepare(sql).all() as Json[]);
/** Text of a page's main element. */
const saidBy = ({ text }: PageSeen) => /<main[^>]*>(.*?)<\/main>/s.exec(text)?.[1] ?? "";
const ask = async (email: string, on = daemon) => await new Visitor(on).send("/signup", { email });

/** Completes a sign-up from its e-mail: a name, an organization, a password. */
async function finish(token: string, org_name: string, on = daemon) {
  const visitor = new Visitor(on);
  const look = await visitor.send("/signup", { do: "look", token });
  const email = /name="email" value="([^"]*)"/.exec(look.text)?.[1] ?? "";
  const answer = await visitor.send("/signup", { do: "done", token, email, org_name, name: "Ada", password: PASSWORD });
  return { visitor, look, answer };
}

async function signUp(email: string, org_name: string) {
  const before = mail.letters.length;
  await ask(email);
  return await finish(linkIn(await mail.letterTo(email, /Finish/, before)).token, org_name);
}

const creditsOf = async (visitor: Visitor) => (await visitor.api("GET", "/v1/orgs/self/credits")).body;

beforeAll(async () => {
  mail = await MailServer.start({ refuses: ["nobody@example.org"] });
  daemon = await startWith({ ROOMD_SIGNUP_MODE: "open", ROOMD_SIGNUP_DOMAINS: "example.org" });
  people = await People.first(daemon);
});
afterAll(async () => {
  await daemon.stop();
  await mail.stop();
});

describe("open sign-up", () => {
  test("requires an address and an e-mail, and creates an organization with credits", async () => {
    const response = await ask("Ada@Example.org ");
    expect([response.status, saidBy(response)]).toEqual([200, expect.stringContaining(LETTER)]);
    const letter = await mail.letterTo("ada@example.org", /^Finish signing up · roomd$/);
    expect(letter).toMatchObject({ from: "roomd@example.org", text: expect.stringContaining(daemon.webUrl) });
    const { path, token } = linkIn(letter);
    expect(path).toBe("/signup");
    const { visitor, look, answer } = await finish(token, "ada's");
    expect(saidBy(look)).toContain("ada@example.org");
    expect([answer.status, answer.to]).toEqual([303, "/"]);
    const account = (await visitor.api("GET", "/v1/account")).body;
    expect(account).toMatchObject({ email: "ada@example.org", email_verified: true, role: "owner" });
    expect(account.organizations).toMatchObject([{ name: "ada's", role: "owner" }]);
    expect(await creditsOf(visitor)).toMatchObject({
      granted: 500,
      items: [{ kind: "grant", amount: 500, reason: "signing up" }],
    });
    expect((await visitor.api("GET", "/v1/orgs/self/usage")).body.plan).toBe("free");
    expect((await finish(token, "again")).answer.status).toBe(404);
    const events = rows(`SELECT event FROM audit WHERE org_id = '${account.org_id}' `).map(({ event }) => event);
    expect(events).toEqual(
      expect.arrayContaining(["org.created", "user.created", "member.added", "org.credits_granted", "auth.signed_in"]),
    );
  });

  test("grants credits once per address, regardless of plus suffixes and deleted accounts", async () => {
    const { visitor: first } = await signUp("once@example.org", "once");
    expect(await creditsOf(first)).toMatchObject({ granted: 500 });
    const { visitor: second } = await signUp("once+more@example.org", "once more");
    expect(await creditsOf(second)).toMatchObject({ granted: 0, remaining: 0 });
    await first.send("/org/end", { org_name: "once" });
    await until(
      "the organization is deleted",
      () => rows("SELECT 1 FROM orgs WHERE name = 'once' AND ended_at IS NULL").length === 0,
    );
    const { status, stderr } = await daemon.cli(["user", "forget", "once@example.org"]);
    expect([status, stderr]).toEqual([0, ""]);
    const { visitor: third } = await signUp("once@example.org", "once again");
    expect(await creditsOf(third)).toMatchObject({ granted: 0, remaining: 0 });
  });

  test("answers the same for an existing account, and informs its owner by e-mail", async () => {
    await signUp("here@example.org", "here");
    const [here, new_] = [await ask("here@example.org"), await ask("not-here@example.org")];
    expect([here.status, saidBy(here)]).toEqual([new_.status, saidBy(new_)]);
    const letter = await mail.letterTo("here@example.org", /You already have an account/);
    expect(letter.text).not.toMatch(/#\S{20}/);
  });

  test("accepts an organization's name once, and the link stays valid after a refusal", async () => {
    await ask("name@example.org");
    const { token } = linkIn(await mail.letterTo("name@example.org", /Finish/));
    expect((await finish(token, "ada's")).answer).toMatchObject({ status: 409 });
    expect((await finish(token, "   ")).answer).toMatchObject({ status: 422 });
    expect((await finish(token, "another")).answer).toMatchObject({ status: 303 });
  });

  test("is performed once for two concurrent uses of a link", async () => {
    await ask("twice@example.org");
    const { token } = linkIn(await mail.letterTo("twice@example.org", /Finish/));
    const both = await Promise.all([finish(token, "first of two"), finish(token, "second of two")]);
    expect(both.map(({ answer }) => answer.status).sort()).toEqual([303, 404]);
    expect(rows("SELECT email FROM users WHERE email = 'twice@example.org'")).toHaveLength(1);
  });

  test("is limited to the configured domains, and to valid addresses", async () => {
    for (const email of [
      "x@elsewhere.example",
      "x@example.org.evil.example",
      "nothing",
      "a@b@example.org",
      "a@example.org\r\nBcc: b@example.org",
    ]) {
      const { status } = await ask(email);
      expect([email, status]).toEqual([email, 422]);
    }
    expect(mail.letters.filter(({ to }) => to.length !== 1)).toEqual([]);
  });

  test("a mailbox gets five e-mails a day, and the requester always gets the same answer", async () => {
    const messages = [];
    for (let n = 0; n < 8; n++) messages.push(saidBy(await ask("much@example.org")));
    expect(new Set(messages).size).toBe(1);
    await until(
      "five e-mails are sent",
      () => mail.letters.filter(({ to }) => to[0] === "much@example.org").length === 5,
    );
    expect(rows("SELECT * FROM mails WHERE to_address = 'much@example.org'")).toHaveLength(5);
  });

  test("recovery is e-mailed even if other requests have used up the address's limit", async () => {
    const email = "kept@example.org";
    await people.member("member", { email });
    people.sql((database) => database.prepare("UPDATE users SET verified_at = created_at WHERE email = ?").run(email));
    for (let n = 0; n < 6; n++) await ask(email);
    await new Visitor(daemon).send("/recover", { email });
    expect(linkIn(await mail.letterTo(email, /Reset your access/)).token).not.toBe("");
    expect(rows(`SELECT * FROM mails WHERE to_address = '${email}' AND kind = 'known'`)).toHaveLength(5);
  });

  test("a permanently rejected e-mail is not retried, and the link of an e-mail is stored nowhere", async () => {
    await ask("nobody@example.org");
    const outcome = () => rows("SELECT * FROM mails WHERE to_address = 'nobody@example.org'")[0]?.outcome;
    await until("the e-mail is refused", () => outcome() === "refused");
    await ask("secret@example.org");
    const { token } = linkIn(await mail.letterTo("secret@example.org", /Finish/));
    const kept = rows("SELECT * FROM links UNION ALL SELECT *, null, null, null FROM mails");
    expect(JSON.stringify(kept)).not.toContain(token);
  });
});

describe("an existing user", () => {
  test("verifies an address while signed in, and can recover by e-mail from then on", async () => {
    const person = await people.member("member", { email: "bob@example.org" });
    const unknown = await new Visitor(daemon).send("/recover", { email: "nobody-at-all@example.org" });
    const known = await new Visitor(daemon).send("/recover", { email: "bob@example.org" });
    expect([known.status, saidBy(known)]).toEqual([unknown.status, saidBy(unknown)]);
    await people.prove(person);
    expect((await person.send("/account", { do: "email", email: "bob@example.org" })).to).toBe("/account");
    const { path, token } = linkIn(await mail.letterTo("bob@example.org", /Confirm/));
    expect(path).toBe("/verify");
    const other = await people.member("member");
    expect((await other.send("/verify", { token })).status).toBe(404);
    expect((await new Visitor(daemon).send("/verify", { token })).to).toBe("/signin");
    expect((await person.send("/verify", { token })).to).toBe("/account");
    expect((await person.api("GET", "/v1/account")).body).toMatchObject({
      email: "bob@example.org",
      email_verified: true,
    });
    // Not before it was verified.
    const toBob = mail.letters.filter(
      ({ subject, to }) => /Reset your access/.test(subject) && to[0] === "bob@example.org",
    );
    expect(toBob).toEqual([]);
    await new Visitor(daemon).send("/recover", { email: "bob@example.org" });
    const way = linkIn(await mail.letterTo("bob@example.org", /Reset your access/));
    expect(way.path).toBe("/setup");
    const back = new Visitor(daemon);
    await back.send("/setup", { token: way.token, step: "done", password: "another long secret" });
    expect((await back.api("GET", "/v1/account")).body).toMatchObject({ email: "bob@example.org" });
    expect((await person.api("GET", "/v1/account")).status).toBe(401);
  });

  test("changes the address by confirming an e-mail, and cannot take another user's", async () => {
    const person = await people.member("member", { email: "old@example.org" });
    await people.prove(person);
    await person.send("/account", { do: "email", email: "new@example.org" });
    const { token } = linkIn(await mail.letterTo("new@example.org", /Confirm/));
    expect((await person.api("GET", "/v1/account")).body.email).toBe("old@example.org");
    await person.send("/verify", { token });
    expect((await person.api("GET", "/v1/account")).body.email).toBe("new@example.org");
    const { visitor } = await signUp("has-shown@example.org", "shown");
    await person.send("/account", { do: "email", email: "has-shown@example.org" });
    const taken = linkIn(await mail.letterTo("has-shown@example.org", /Confirm/));
    expect((await person.send("/verify", { token: taken.token })).status).toBe(409);
    // The previous address is notified if it was verified, even if its daily limit of e-mails is used up.
    await people.prove(visitor);
    for (let n = 0; n < 6; n++) await new Visitor(daemon).send("/recover", { email: "has-shown@example.org" });
    await visitor.send("/account", { do: "email", email: "moved@example.org" });
    await visitor.send("/verify", { token: linkIn(await mail.letterTo("moved@example.org", /Confirm/)).token });
    expect((await mail.letterTo("has-shown@example.org", /changed/)).text).toContain("was changed");
  });

  test("cannot block an address by an unverified claim to it", async () => {
    const squatter = await people.member("member", { email: "eve@example.org" });
    const { look, answer, visitor } = await signUp("eve@example.org", "eve's");
    expect(saidBy(look)).toContain('class="trouble"');
    expect(answer.status).toBe(303);
    expect((await visitor.api("GET", "/v1/account")).body).toMatchObject({
      email: "eve@example.org",
      email_verified: true,
      organizations: [{ name: "eve's" }],
    });
    const { email, email_verified } = (await squatter.api("GET", "/v1/account")).body;
    expect([email, email_verified]).toEqual([expect.stringMatching(/^usr_.*@no-address\.invalid$/), false]);
    // A verified address cannot be taken.
    const before = mail.letters.length;
    await ask("eve@example.org");
    expect((await mail.letterTo("eve@example.org", /already have an account/, before)).text).toContain("/signin");
  });

  test("may sign up again when their only organization has ended", async () => {
    const { visitor } = await signUp("gone@example.org", "gone");
    await people.prove(visitor);
    const { org_id } = (await visitor.api("GET", "/v1/account")).body;
    await visitor.send("/org/end", { org_name: "gone" });
    const ended = `SELECT 1 FROM orgs WHERE org_id = '${org_id}' AND ended_at IS NOT NULL`;
    await until("the organization is deleted", () => rows(ended).length > 0);
    const { answer } = await signUp("gone@example.org", "back");
    expect([answer.status, answer.to]).toEqual([303, "/"]);
  });

  test("recovers by e-mail alone, and sign-in methods of an intruder are removed", async () => {
    const { visitor } = await signUp("lost@example.org", "lost");
    await people.prove(visitor);
    const { user_id } = (await visitor.api("GET", "/v1/account")).body;
    people.sql((database) =>
      database
        .prepare(
          "INSERT INTO identities (identity_id, user_id, issuer, subject, label, created_at) VALUES ('idn_1', ?, 'https://issuer', 's', 's', '2026-01-01T00:00:00.000Z')",
        )
        .run(user_id),
    );
    for (const only of [false, true]) {
      const before = mail.letters.length;
      await new Visitor(daemon).send("/recover", { email: "lost@example.org" });
      const { token } = linkIn(await mail.letterTo("lost@example.org", /Reset your access/, before));
      const back = await new Visitor(daemon).send("/setup", {
        token,
        step: "done",
        password: `${PASSWORD} again`,
        ...(only ? { only: "yes" } : {}),
      });
      expect(back.to).toBe("/");
      expect(rows(`SELECT 1 FROM identities WHERE user_id = '${user_id}'`)).toHaveLength(only ? 0 : 1);
    }
  });

  test("is invited by an e-mail with the displayed link", async () => {
    await people.prove(people.owner);
    const { body } = await people.owner.api("POST", "/v1/orgs/self/invitations", {
      role: "viewer",
      email: "Carol@example.org",
    });
    expect(body.is_mailed).toBe(true);
    const letter = await mail.letterTo("carol@example.org", /invited/);
    expect(letter.text).toContain(body.url);
    const carol = new Visitor(daemon);
    const answer = await carol.send(linkIn(letter).path, {
      name: "Carol",
      email: "carol@example.org",
      password: PASSWORD,
    });
    expect(answer.to).toBe("/");
    const open = await people.owner.api("POST", "/v1/orgs/self/invitations", { role: "viewer" });
    expect(open.body.is_mailed).toBe(false);
  });
});

describe("another mode", () => {
  test("approval: an e-mail, a note, the operator's approval, and another e-mail", async () => {
    await using other = await startWith({ ROOMD_SIGNUP_MODE: "approval" });
    await ask("dan@example.org", other);
    const { token } = linkIn(await mail.letterTo("dan@example.org", /Confirm/));
    const visitor = new Visitor(other);
    expect((await visitor.send("/signup", { do: "look", token })).text).toContain("dan@example.org");
    const response = await visitor.send("/signup", { do: "ask", token, name: "Dan", note: "agents that write tests" });
    expect([response.status, saidBy(response)]).toEqual([200, expect.stringContaining("review")]);
    expect((await finish(token, "early", other)).answer.status).toBe(404);
    const { items } = JSON.parse((await other.cli(["signup", "list", "--json"])).stdout);
    expect(items).toMatchObject([{ email: "dan@example.org", name: "Dan", note: "agents that write tests" }]);
    expect(JSON.parse((await other.cli(["signup", "approve", "dan@example.org", "--json"])).stdout)).toMatchObject({
      email: "dan@example.org",
      is_mailed: true,
    });
    const yes = linkIn(await mail.letterTo("dan@example.org", /can sign up now/));
    expect((await finish(yes.token, "dan's", other)).answer.to).toBe("/");
    expect(JSON.parse((await other.cli(["signup", "list", "--json"])).stdout).items).toEqual([]);
  });

  test("approval without mail: the request is filed immediately, and the operator passes on the link", async () => {
    await using other = await TestDaemon.start({ env: { ROOMD_SIGNUP_MODE: "approval" } });
    const visitor = new Visitor(other);
    const response = await visitor.send("/signup", { email: "eve@example.org", name: "Eve", note: "" });
    expect(saidBy(response)).not.toContain("e-mail");
    const { url } = JSON.parse((await other.cli(["signup", "approve", "eve@example.org", "--json"])).stdout);
    expect((await finish(new URL(url).hash.slice(1), "eve's", other)).answer.to).toBe("/");
    await visitor.send("/signup", { email: "mallory@example.org", name: "M", note: "please" });
    expect((await other.cli(["signup", "refuse", "mallory@example.org"])).status).toBe(0);
    expect((await other.cli(["signup", "approve", "mallory@example.org"])).status).not.toBe(0);
    expect((await visitor.send("/recover", { email: "eve@example.org" })).status).toBe(409);
  });

  test("invite: by the operator's link alone; closed: not at all, but invitations are accepted", async () => {
    await using other = await TestDaemon.start({ env: { ROOMD_SIGNUP_MODE: "invite" } });
    expect((await ask("fay@example.org", other)).status).toBe(403);
    const { url } = JSON.parse((await other.cli(["signup", "invite", "fay@example.org", "--json"])).stdout);
    const token = new URL(url).hash.slice(1);
    expect((await finish(token, "fay's", other)).answer.to).toBe("/");

    await using closed = await TestDaemon.start();
    expect((await new Visitor(closed).see("/signup")).text).not.toContain('name="email"');
    expect((await ask("fay@example.org", closed)).status).toBe(403);
    const refused = await closed.cli(["signup", "invite", "fay@example.org"]);
    expect([refused.status === 0, refused.stderr]).toEqual([false, expect.stringContaining("signup.mode")]);
    const own = await People.first(closed);
    expect((await (await own.member("viewer")).api("GET", "/v1/account")).status).toBe(200);
  });

  test.each([
    [{ ROOMD_SIGNUP_MODE: "open" }, /signup\.mode = "open" needs smtp\.host/],
    [{ ROOMD_SIGNUP_MODE: "approval", ROOMD_WEB_ENABLED: "false" }, /needs web\.enabled/],
    [{ ROOMD_SIGNUP_MODE: "approval", ROOMD_HTTP_BASE_URL: "http://rooms.example.org" }, /needs TLS/],
    [{ ROOMD_SMTP_HOST: "mail.example.org" }, /smtp\.from is missing/],
    [{ ROOMD_SMTP_HOST: "mail.example.org", ROOMD_SMTP_FROM: "x@y.z", ROOMD_SMTP_TLS: "off" }, /on this host/],
    [{ ROOMD_SMTP_HOST: "localhost", ROOMD_SMTP_FROM: "no address" }, /must be an address/],
  ])("%o is reported before a listener is opened", async (env, why) => {
    await expect(TestDaemon.start({ env })).rejects.toThrow(why);
  });
});

describe("the mail server", () => {
  test("gets the e-mail later if it is down, also after a kill of the daemon", async () => {
    const port = await freePort();
    const env = { ...mail.env, ROOMD_SMTP_PORT: String(port), ROOMD_SIGNUP_MODE: "open" };
    await using other = await TestDaemon.start({ env });
    await ask("late@example.org", other);
    await other.restart("SIGKILL");
    const late = await MailServer.start({ port });
    try {
      await until("the e-mail has arrived", () => late.letters.length > 0, 60_000);
      expect((await finish(linkIn(late.letters[0] as never).token, "late", other)).answer.to).toBe("/");
    } finally {
      await late.stop();
    }
  }, 90_000);

  test("is used with encryption and authentication, never with less than configured", async () => {
    const directory = mkdtempSync(join(tmpdir(), "roomd-mail-"));
    const { authority, cert, key } = await issue(["localhost"]);
    writeFileSync(join(directory, "authority.pem"), authority);
    writeFileSync(join(directory, "password"), "of the mailer\n");
    const account = { user: "roomd", password: "of the mailer" };
    const trusted = { NODE_EXTRA_CA_CERTS: join(directory, "authority.pem") };
    const servers = {
      starttls: await MailServer.start({ starttls: true, cert, key, ...account }),
      implicit: await MailServer.start({ secure: true, cert, key, ...account }),
      untrusted: await MailServer.start({ starttls: true, cert, key, ...account }),
      plain: await MailServer.start({}),
    };
    try {
      for (const [name, server] of Object.entries(servers)) {
        const env = {
          ...server.env,
          ROOMD_SIGNUP_MODE: "open",
          ROOMD_SMTP_TLS: name === "implicit" ? "implicit" : "starttls",
          ROOMD_SMTP_USER: "roomd",
          ROOMD_SMTP_PASSWORD_FILE: join(directory, "password"),
          ...(name === "untrusted" ? {} : trusted),
        };
        await using other = await TestDaemon.start({ env });
        await ask("tls@example.org", other);
        if (name === "starttls" || name === "implicit") {
          const letter = await server.letterTo("tls@example.org", /Finish/);
          expect(letter).toMatchObject({ secure: true, user: "roomd" });
        } else {
          await until("the e-mail has failed", () => other.logged({ level: "warn" }).some(({ mail_id }) => mail_id));
          expect(server.letters).toEqual([]);
        }
      }
    } finally {
      await Promise.all(Object.values(servers).map((server) => server.stop()));
      rmSync(directory, { recursive: true });
    }
  }, 60_000);
});
