/** A person who has made thousands of keys, and the longest turn of the event loop while the person's data are exported. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { PERSONAL } from "../../../daemon/compose/personal.ts";
import { type Bound, bodyOf, type Done } from "../../../daemon/core/call/operation.ts";
import { nextTurn } from "../../../daemon/core/concurrency/next-turn.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { makePersonal } from "../../../daemon/domain/users/personal.ts";
import type { PageRequest } from "../../../daemon/edge/page-request.ts";
import type { Pipeline } from "../../../daemon/edge/pipeline/pipeline.ts";
import { dataHandlers } from "../../../daemon/edge/web/handlers/data.ts";
import type { HandlerDeps } from "../../../daemon/edge/web/handlers/handler.ts";
import { type Page, render } from "../../../daemon/edge/web/layout.tsx";
import { makeCall, type WebContext } from "../../../daemon/edge/web/request-context.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { accountExport } from "../../../shared/api/people/account.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const KEYS = 20_000;
const MAX_MS = 10;
/** Its text has several megabytes, and becomes one response. */
const MAX_PAGE_MS = 15;
const AT = "2026-01-01T00:00:00.000Z";

let database: Database;
let bound: Bound;
beforeEach(() => {
  const connection = openConnection(":memory:");
  migrate(connection);
  connection.execute("PRAGMA foreign_keys = OFF");
  connection.execute(
    `INSERT INTO users (user_id, email, name, created_at) VALUES ('usr_1', 'a@b.example', 'A', '${AT}')`,
  );
  connection.execute(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${KEYS})
    INSERT INTO api_keys (key_id, org_id, kind, name, key_sha256, key_prefix, scopes, created_at, created_by_type, created_by_id)
      SELECT printf('kid_%05d', i), 'org_' || (i % 500), 'api', 'key ' || i, printf('%064x', i), 'rmk-1234', '["rooms:read"]', '${AT}', 'user', 'usr_1'
        FROM n`);
  database = makeDatabase(connection);
  const deps = { database, personal: PERSONAL } as unknown as Parameters<typeof makePersonal>[0];
  bound = makePersonal(deps).find(({ operation }) => operation.name === accountExport.name) as Bound;
});
afterEach(() => database.close());

const run = async () => {
  const call = { caller: { key_id: "usr_1", session: { session_id: "ses_1" } }, signal: new AbortController().signal };
  const done = await bound.run(call as never, {}, undefined, undefined as never);
  return done as unknown as Done<typeof accountExport>;
};

test("an export is read and written in short turns, without secrets", async () => {
  let done: Done<typeof accountExport> = { outcome: "ok" };
  const longest = await longestTurn(async () => {
    done = await run();
  });
  const exported = bodyOf(done);
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(exported?.kept.users).toMatchObject([{ user_id: "usr_1" }]);
  expect(exported?.kept.api_keys?.map(({ key_id }) => key_id)).toHaveLength(KEYS);
  expect(exported?.kept.api_keys?.[0]).toEqual(expect.not.objectContaining({ key_sha256: expect.anything() }));
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

test("the page of personal data is written in short turns", async () => {
  const account = { email: "a@b.example", name: "A", org_id: "org_1", organizations: [], role: "owner" };
  const pipeline = { run: async () => ({ kind: "done", done: await run(), replayed: false }) } as unknown as Pipeline;
  const request = { url: new URL("http://a.example/account/data"), signal: new AbortController().signal };
  const call = makeCall(pipeline, [bound], request as PageRequest, () => null as never);
  const visit = {
    ...{ request, isPost: true, form: new Map(), field: () => "export", caller: { org_id: "org_1", session: {} } },
    call: async (operation: Operation) => (operation === accountExport ? call(operation) : { ok: true, body: account }),
  };
  let text = "";
  const longest = await longestTurn(async () => {
    const outcome = await dataHandlers({} as HandlerDeps)["/account/data"]?.(visit as unknown as WebContext);
    const { page } = outcome as { page: Page };
    const response = new Response(render(page, null, { hasHosts: false, colours: null }));
    await nextTurn();
    text = await response.text();
  });
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(text).toContain("&#34;kid_20000&#34;");
  expect(text).not.toContain('"kid_');
  expect(longest).toBeLessThan(boundOf(MAX_PAGE_MS));
});
