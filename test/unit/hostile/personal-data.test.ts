/** A person who has made thousands of keys, and the longest turn of the event loop while the person's data are exported. */
import { expect, test } from "vitest";
import { PERSONAL } from "../../../daemon/compose/personal.ts";
import { bodyOf } from "../../../daemon/core/call/operation.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { makePersonal } from "../../../daemon/domain/users/personal.ts";
import { accountExport } from "../../../shared/api/people/account.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const KEYS = 20_000;
const MAX_MS = 10;
const AT = "2026-01-01T00:00:00.000Z";

test("an export is read and written in short turns, without secrets", async () => {
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
  const database = makeDatabase(connection);
  const deps = { database, personal: PERSONAL } as unknown as Parameters<typeof makePersonal>[0];
  const bound = makePersonal(deps).find(({ operation }) => operation.name === accountExport.name);
  const call = { caller: { key_id: "usr_1", session: { session_id: "ses_1" } }, signal: new AbortController().signal };
  const run = bound?.run as unknown as (of: typeof call) => Promise<Parameters<typeof bodyOf<typeof accountExport>>[0]>;
  let done: Awaited<ReturnType<typeof run>> | undefined;
  const longest = await longestTurn(async () => {
    done = await run(call);
  });
  const exported = done && bodyOf(done);
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(exported?.kept.users).toMatchObject([{ user_id: "usr_1" }]);
  expect(exported?.kept.api_keys?.map(({ key_id }) => key_id)).toHaveLength(KEYS);
  expect(exported?.kept.api_keys?.[0]).toEqual(expect.not.objectContaining({ key_sha256: expect.anything() }));
  expect(longest).toBeLessThan(boundOf(MAX_MS));
  await database.close();
});
