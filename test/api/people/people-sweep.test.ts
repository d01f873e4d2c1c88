/**
 * Each page, form and account operation in turn: the visitors it is refused to, the form of the refusal, and that nothing is changed. Pages
 * and forms are swept by being on the list of places, operations by being on that of operations.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROUTES } from "../../../daemon/edge/web/routes.ts";
import { ROLES } from "../../../shared/api/people/members.ts";
import { type PageSeen, Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { idOf, invite, People } from "../../harness/people.ts";
import { OPERATIONS, requestOf } from "../requests.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const TABLES = [
  "orgs",
  "users",
  "memberships",
  "links",
  "api_keys",
  "ssh_keys",
  "sessions",
  "browsers",
  "passkeys",
  "identities",
];
/** Columns that a view changes. */
const SEEN = ["seen_at", "last_used_at"];
const VISIT = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
const ELSEWHERE = ["cross-site", "same-site", "none"];

let daemon: TestDaemon;
let people: People;
let owner: Visitor;
let viewer: Visitor;
let foreign: Visitor;
let ended: Visitor;
/** Things of the first organization, which are there. */
let ids: Record<string, string>;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
  ({ owner } = people);
  viewer = await people.member("viewer");
  foreign = await people.foreign();
  ended = (await people.member("owner")).copy();
  await ended.copy().send("/signout", {});
  const { key_id } = (await owner.api("POST", "/v1/orgs/self/keys", { name: "kept" })).body;
  const { invitation_id } = (await owner.api("POST", "/v1/orgs/self/invitations", { role: "viewer" })).body;
  const { session_id, user_id } = (await owner.api("GET", "/v1/account")).body;
  ids = {
    id: daemon.orgId,
    key_id,
    invitation_id,
    session_id,
    user_id,
    token: (await invite(owner, "viewer")).split("/").at(-1) ?? "",
  };
});
afterAll(() => daemon.stop());
beforeEach(() => people.freshProof(ids.user_id ?? ""));

/** All that is kept of people and their organizations. */
function kept(): Json {
  return people.sql((database) =>
    Object.fromEntries(
      TABLES.map((table) => {
        const rows = database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all() as Json[];
        for (const row of rows) for (const column of SEEN) delete row[column];
        return [table, rows];
      }),
    ),
  );
}

/** Returns the response, after a check that nothing was changed. */
async function unmoved<T>(ask: () => Promise<T>): Promise<T> {
  const before = kept();
  const answer = await ask();
  expect(kept()).toEqual(before);
  return answer;
}

const pathOf = (place: string) => place.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "none");
const places = Object.entries(ROUTES).map(([place, facts]) => ({ place, ...facts }));
const forms = places.flatMap(({ place, who, forms: each }) =>
  Object.entries(each).map(([name, form]) => ({ place, who, name, ...form })),
);
const ofPersons = forms.filter(({ who }) => who === "person");
type SentForm = (typeof forms)[number];
/** The form as it would be sent, about things that are there. */
const fieldsOf = ({ name, fields }: SentForm): Record<string, string> => ({
  ...(name === "" ? {} : { do: name }),
  ...Object.fromEntries(
    Object.entries(fields).map(([field, text]) => [field, text.endsWith("_none") ? (ids[field] ?? text) : text]),
  ),
});
const send = (visitor: Visitor, form: SentForm, headers: Record<string, string> = {}) =>
  visitor.send(pathOf(form.place), fieldsOf(form), headers);

function expectStrict({ headers }: PageSeen | Response): void {
  const policy = headers.get("content-security-policy") ?? "";
  for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"]) {
    expect(policy).toContain(part);
  }
  expect(policy).not.toContain("unsafe-");
  expect(Object.fromEntries(headers)).toMatchObject({
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": expect.stringContaining("camera=()"),
    "referrer-policy": expect.stringMatching(/^(same-origin|no-referrer)$/),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  });
}

describe("the page", () => {
  test.each(places)("$place has strict headers with any answer", async ({ place }) => {
    const path = pathOf(place);
    for (const visitor of [new Visitor(daemon), owner, viewer]) {
      expectStrict(await visitor.see(path));
      expectStrict(await visitor.send(path, {}, { "sec-fetch-site": "cross-site" }));
      expectStrict(await visitor.fetch("PUT", path));
      expectStrict(await visitor.fetch("POST", path, { "content-type": "text/plain" }, "x"));
    }
  });

  test.each(places)("$place is shown to its intended audience only", async ({ place, who, isSeen }) => {
    const path = pathOf(place);
    const statuses = [];
    for (const visitor of [new Visitor(daemon), ended, owner]) statuses.push(await unmoved(() => visitor.see(path)));
    const [nobody, former, person] = statuses;
    expect(former?.status).toBe(nobody?.status);
    if (!isSeen) expect(statuses.map(({ status }) => status)).toEqual([405, 405, 405]);
    else if (who === "person") {
      expect([nobody?.status, nobody?.to]).toEqual([303, "/signin"]);
      expect([200, 303]).toContain(person?.status);
    } else expect([200, 400, 404]).toContain(nobody?.status);
  });

  test.each(places)(
    "$place can be opened by a link from another site, and not embedded or fetched",
    async ({ place, who }) => {
      if (who !== "person") return;
      const path = pathOf(place);
      const shown = await owner.see(path, VISIT);
      const inFrame = await owner.see(path, { ...VISIT, "sec-fetch-dest": "iframe" });
      const byScript = await owner.see(path, { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" });
      expect(shown.status).toBe((await owner.see(path)).status);
      expect([inFrame.to, byScript.to]).toEqual(["/signin", "/signin"]);
    },
  );

  test.each(places)("$place has no forms other than the listed ones", async ({ place, isSeen }) => {
    if (!isSeen) return;
    for (const visitor of [new Visitor(daemon), owner, viewer]) {
      const { text } = await visitor.see(pathOf(place));
      for (const [tag, attributes = "", inner = ""] of text.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
        // A GET form that only requests a page, with its parameters in the URL, submits nothing.
        if (tag.includes(`method="get" action="${pathOf(place)}"`)) continue;
        expect(tag).toContain('method="post"');
        const action = /action="([^"]*)"/.exec(attributes)?.[1] ?? "";
        const target = places.find((each) => pathOf(each.place) === action);
        const name = /name="do" value="([^"]*)"/.exec(inner)?.[1] ?? "";
        expect([place, action, Object.keys(target?.forms ?? {})]).toEqual([
          place,
          action,
          expect.arrayContaining([name]),
        ]);
      }
    }
  });
});

describe("the form", () => {
  test.each(forms)("$place $name is accepted only from pages of the service", async (form) => {
    for (const site of ELSEWHERE) {
      const answer = await unmoved(() => send(owner, form, { "sec-fetch-site": site }));
      expect([site, answer.status]).toEqual([site, 403]);
    }
    const cookie = owner.headers.cookie ?? "";
    const bare = async (headers: Record<string, string>) =>
      await fetch(daemon.url + pathOf(form.place), {
        method: "POST",
        redirect: "manual",
        headers: { ...FORM, cookie, ...headers },
        body: new URLSearchParams(fieldsOf(form)).toString(),
      });
    expect((await unmoved(() => bare({}))).status).toBe(403);
    expect((await unmoved(() => bare({ origin: "https://elsewhere.example" }))).status).toBe(403);
    expect((await unmoved(() => bare({ origin: "null" }))).status).toBe(403);
  });

  test.each(ofPersons)("$place $name has no effect without a session or with an ended one", async (form) => {
    for (const visitor of [new Visitor(daemon), ended]) {
      expect(await unmoved(() => send(visitor, form))).toMatchObject({ status: 303, to: "/signin" });
    }
  });

  test.each(ofPersons)("$place $name with another organization's session changes nothing of ours", async (form) => {
    const ours = () => {
      const { api_keys, memberships, links, sessions } = kept();
      const ofOrg = (rows: Json[]) => rows.filter(({ org_id }) => org_id === daemon.orgId);
      return [api_keys, memberships, links, sessions].map(ofOrg);
    };
    const before = ours();
    await people.prove(foreign);
    const answer = await send(foreign, form);
    expect(answer.status).toBeLessThan(500);
    expect(ours()).toEqual(before);
    // It may have signed itself out, or deleted its own resources.
    if (foreign.session === "" || (await foreign.api("GET", "/v1/account")).status !== 200)
      foreign = await people.foreign();
  });

  test.each(ofPersons.filter(({ role = "viewer" }) => role !== "viewer"))(
    "$place $name is refused below its role",
    async (form) => {
      const least = ROLES.indexOf(form.role ?? "viewer");
      for (const role of ROLES.slice(least + 1)) {
        const visitor = role === "viewer" ? viewer : await people.member(role);
        const { status, text } = await unmoved(() => send(visitor, form));
        expect([role, status, /role="alert"/.test(text)]).toEqual([role, expect.toBeOneOf([403, 404, 409, 422]), true]);
      }
    },
  );

  test.each(ofPersons.filter(({ wantsProof }) => wantsProof))("$place $name requires a fresh proof", async (form) => {
    people.staleProofs();
    const answer = await unmoved(() => send(owner, form));
    expect(answer).toMatchObject({ status: 403, text: expect.stringContaining('name="proof"') });
  });

  test.each(forms)("$place $name is limited in size, and to one content type", async (form) => {
    const path = pathOf(form.place);
    const long = new URLSearchParams({ ...fieldsOf(form), more: "x".repeat(20_000) }).toString();
    expect((await unmoved(() => owner.fetch("POST", path, FORM, long))).status).toBe(413);
    const json = { "content-type": "application/json" };
    expect((await unmoved(() => owner.fetch("POST", path, json, "{}"))).status).toBe(415);
  });
});

describe("the operation", () => {
  const ofAccount = OPERATIONS.filter(({ access, ofAccount: also }) => access === "account" || also);
  const call = (visitor: Visitor, operation: (typeof OPERATIONS)[number], headers: Record<string, string> = {}) => {
    const { method, path, body } = requestOf(operation, { room_id: "none", org_id: daemon.orgId }, ids);
    return visitor.api(method, path, body === undefined ? undefined : JSON.parse(body), headers);
  };
  const changing = ofAccount.filter(({ method }) => method !== "GET");

  test("is one of several", () => expect(ofAccount.length).toBeGreaterThan(12));

  test.each(ofAccount)("$name is refused for an ended session", async (operation) => {
    expect(await unmoved(() => call(ended, operation))).toMatchObject({ status: 401, body: { code: "session_ended" } });
  });

  test.each(ofAccount)("$name is accepted only from pages of the service", async (operation) => {
    for (const site of ELSEWHERE) {
      const answer = await unmoved(() => call(owner, operation, { "sec-fetch-site": site }));
      expect([site, answer.status, answer.body.code]).toEqual([site, 403, "foreign_request"]);
    }
    const { method, path } = requestOf(operation, { room_id: "none", org_id: daemon.orgId }, ids);
    const bare = await fetch(daemon.url + path, { method, headers: { cookie: owner.headers.cookie ?? "" } });
    expect(((await bare.json()) as Json).code).toBe("foreign_request");
  });

  test.each(changing)("$name changes nothing of another organization or person", async (operation) => {
    await people.prove(foreign);
    const own = await idOf(foreign);
    const others = () => {
      const { users, ...rest } = kept();
      const not = (rows: Json[]) => rows.filter((row) => ![row.user_id, row.created_by_id].includes(own));
      return [users, ...(Object.values(rest) as Json[][])].map(not);
    };
    const before = others();
    const { status } = await call(foreign, operation);
    expect(status).toBeLessThan(500);
    if (operation.path.includes("{")) expect([403, 404, 409]).toContain(status);
    expect(others()).toEqual(before);
    if ((await foreign.api("GET", "/v1/account")).status !== 200) foreign = await people.foreign();
  });

  test.each(changing.filter(({ wantsProof }) => wantsProof))("$name requires a fresh proof", async (operation) => {
    people.staleProofs();
    const answer = await unmoved(() => call(owner, operation));
    expect(answer).toMatchObject({ status: 403, body: { code: "proof_required" } });
  });

  test.each(changing.filter(({ path }) => path.includes("{org_id}")))(
    "$name is refused for a viewer",
    async (operation) => {
      const { status, body } = await unmoved(() => call(viewer, operation));
      expect([status, body.code]).toEqual([expect.toBeOneOf([403, 404, 422]), expect.any(String)]);
    },
  );
});
