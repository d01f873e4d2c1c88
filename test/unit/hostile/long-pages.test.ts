/** An organization with the maximum numbers of keys, members and invitations, and the longest turn of the event loop for a page of them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bound, bodyOf, trialCall } from "../../../daemon/core/call/operation.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { makeKeyVerbs } from "../../../daemon/domain/orgs/key-verbs.ts";
import { makeMembers } from "../../../daemon/domain/users/members/members.ts";
import { accountHandlers } from "../../../daemon/edge/web/handlers/account.ts";
import type { HandlerDeps } from "../../../daemon/edge/web/handlers/handler.ts";
import { memberHandlers } from "../../../daemon/edge/web/handlers/members.ts";
import { type Page, render } from "../../../daemon/edge/web/layout.tsx";
import type { WebContext } from "../../../daemon/edge/web/request-context.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { applicationList } from "../../../shared/api/grants.ts";
import { MAX_KEY_ROOMS, MAX_KEYS } from "../../../shared/api/orgs.ts";
import { accountGet } from "../../../shared/api/people/account.ts";
import { MAX_INVITATIONS, MAX_MEMBERS } from "../../../shared/api/people/members.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const MAX_MS = 20;
const ROWS = 100;
/** They are newer than all active keys. */
const ENDED = 850;
const AT = "2026-01-01T00:00:00.000Z";
const LATER = "2100-01-01T00:00:00.000Z";
const ROOMS = JSON.stringify(Array.from({ length: MAX_KEY_ROOMS }, (_, n) => `room-${n + 1}`));
const CALLER = {
  org_id: "org_1",
  key_id: "usr_0001",
  kind: "user",
  room_ids: null,
  agent_id: null,
  session: { gives: ["keys:write"] },
};
const ACCOUNT = {
  user_id: "usr_0001",
  email: "a@b.example",
  name: "A",
  org_id: "org_1",
  organizations: [],
  role: "owner",
};
const APPLICATION = { client_name: "Walker", user_name: "A", created_at: AT, last_used_at: null };
const APPLICATIONS = Array.from({ length: ROWS }, (_, n) => ({ ...APPLICATION, grant_id: `kid_a${n}` }));

const handlers = { ...accountHandlers({} as HandlerDeps), ...memberHandlers({} as HandlerDeps) };
const upTo = (most: number) => `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${most})`;

let database: Database;
let verbs: Bound[];
beforeAll(() => {
  const connection = openConnection(":memory:");
  migrate(connection);
  connection.execute("PRAGMA foreign_keys = OFF");
  connection.execute(`${upTo(MAX_KEYS + ENDED)}
    INSERT INTO api_keys (key_id, org_id, kind, name, key_sha256, key_prefix, scopes, room_ids, created_at, revoked_at, created_by_type, created_by_id)
      SELECT printf('kid_%05d', i), 'org_1', 'api', 'key ' || i, printf('%064x', i), 'key-1234', '["rooms:read"]', '${ROOMS}', '${AT}',
        iif(i > ${MAX_KEYS}, '${AT}', NULL), 'user', printf('usr_%04d', i % ${MAX_MEMBERS}) FROM n`);
  connection.execute(`${upTo(MAX_MEMBERS)}
    INSERT INTO users (user_id, email, name, created_at)
      SELECT printf('usr_%04d', i), i || '@b.example', 'user ' || i, '${AT}' FROM n`);
  connection.execute(`${upTo(MAX_MEMBERS)}
    INSERT INTO memberships (org_id, user_id, role, created_at)
      SELECT 'org_1', printf('usr_%04d', i), iif(i = 1, 'owner', 'member'), '${AT}' FROM n`);
  connection.execute(`${upTo(MAX_INVITATIONS)}
    INSERT INTO links (link_id, token_sha256, kind, org_id, role, email, created_by_type, created_by_id, created_at, expires_at)
      SELECT printf('lnk_%04d', i), printf('%064x', i), 'invitation', 'org_1', 'member', i || '@c.example', 'user', 'usr_0001', '${AT}', '${LATER}'
        FROM n`);
  database = makeDatabase(connection);
  verbs = [
    ...makeKeyVerbs({ database, withUse: (row) => row } as Parameters<typeof makeKeyVerbs>[0]),
    ...makeMembers({ database } as Parameters<typeof makeMembers>[0]),
  ];
});
afterAll(() => database.close());

async function call({ name }: Operation, input: Record<string, unknown> = {}) {
  if (name === accountGet.name) return { ok: true, body: ACCOUNT };
  if (name === applicationList.name) return { ok: true, body: { items: APPLICATIONS, next_cursor: "older" } };
  const verb = verbs.find(({ operation }) => operation.name === name) as Bound;
  const trial = trialCall(CALLER as never);
  const done = await verb.run(trial, input, verb.find(trial, { org_id: "self" }), undefined as never);
  return { ok: true, body: bodyOf(done) };
}

async function see(path: string) {
  const url = new URL(path, "http://a.example");
  const visit = {
    request: { url, signal: new AbortController().signal },
    isPost: false,
    form: new Map(),
    field: () => "",
    caller: CALLER,
    call,
  };
  let text = "";
  const longest = await longestTurn(async () => {
    const outcome = await handlers[url.pathname]?.(visit as unknown as WebContext);
    text = render((outcome as { page: Page }).page);
  });
  const idsOf = (field: string) => [
    ...new Set([...text.matchAll(new RegExp(`name="${field}" value="(\\w+)"`, "g"))].map(([, id]) => id)),
  ];
  return { text, longest, idsOf, next: (list: string) => new RegExp(`href="([^"]+\\?${list}=[^"]+)"`).exec(text)?.[1] };
}

/** All pages of a list, by its links. */
async function follow(path: string, list: string, field: string, most = Number.POSITIVE_INFINITY) {
  const found: (string | undefined)[][] = [];
  const turns: number[] = [];
  for (let at: string | undefined = path; at !== undefined && found.length < most; ) {
    const { idsOf, next, longest } = await see(at);
    found.push(idsOf(field));
    turns.push(longest);
    at = next(list);
  }
  console.log(`longest turns of pages of ${list}: ${turns.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  expect(Math.max(...turns)).toBeLessThan(boundOf(MAX_MS));
  return found;
}

test("a page of keys has 100 active ones, and is read and rendered in short turns", async () => {
  const pages = await follow("/account/keys", "keys", "key_id", 3);
  const newest = (n: number) => `kid_${String(MAX_KEYS - n).padStart(5, "0")}`;
  expect(pages.flat()).toEqual(Array.from({ length: 3 * ROWS }, (_, n) => newest(n)));
});

test("of a key's rooms the page names three", async () => {
  const { text } = await see("/account/keys");
  expect(text).toContain(`read only · room-1, room-2, room-3 and ${MAX_KEY_ROOMS - 3} more<`);
  expect(text).not.toContain("room-4");
});

test.each([
  ["members", "user_id", MAX_MEMBERS],
  ["invitations", "invitation_id", MAX_INVITATIONS],
])("pages of %s have 100 each, and all of them together, in short turns", async (list, field, most) => {
  const pages = await follow("/org/members", list, field);
  expect(pages.map(({ length }) => length)).toEqual(Array.from({ length: most / ROWS }, () => ROWS));
  expect(new Set(pages.flat()).size).toBe(most);
});

test("older applications are a link away", async () => {
  expect((await see("/org/members")).next("applications")).toBe("/org/members?applications=older");
});
