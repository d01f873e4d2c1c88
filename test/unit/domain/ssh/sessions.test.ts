/**
 * SSH sessions are bound to the credential that opened them: they are closed with it, all of that credential and no others, and this is
 * recorded.
 */
import { expect, test } from "vitest";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { RevocationWatch } from "../../../../daemon/core/call/revocation-watch.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import type { SandboxReach } from "../../../../daemon/domain/sandboxes/access.ts";
import { type Session, Sessions } from "../../../../daemon/domain/ssh/sessions.ts";

test("a revoked key closes its sessions and no others, each with a record of the reason", async () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  const holds = new RevocationWatch();
  const sandboxes = { ended: () => Promise.withResolvers<never>().promise } as unknown as SandboxReach;
  const log = makeLog("error", () => {});
  const sessions = new Sessions({ database, log, sandboxes, orgs: { holds } });
  const good = new Set(["kid_1", "ssk_1"]);
  const cut: string[] = [];
  const keep = (id: string, name: string) => {
    const over = Promise.withResolvers<Record<string, unknown>>();
    const session: Session = {
      credential: {
        kind: "api_key",
        id,
        sandbox_id: null,
        caller: { org_id: "org_1", key_id: id, name } as unknown as Caller,
        isCurrent: () => good.has(id),
      },
      sandbox_id: "sbx_1",
      facts: { details: {} },
      ip: null,
      cut: () => {
        cut.push(name);
        over.resolve({});
      },
      over: over.promise,
    };
    sessions.keep(session);
  };
  keep("kid_1", "one");
  keep("kid_1", "two");
  keep("ssk_1", "other");
  good.delete("kid_1");
  holds.look();
  expect(cut).toEqual(["one", "two"]);
  await new Promise((turn) => setImmediate(turn));
  await database.commit(() => {});
  expect([sessions.countOf("kid_1"), sessions.countOf("ssk_1")]).toEqual([0, 1]);
  const records = listAudit(database.queries, { org_id: "org_1", order: "asc", limit: 10 });
  expect(records.map(({ event, details }) => [event, JSON.parse(details).reason])).toEqual([
    ["ssh.session_closed", "unauthorized"],
    ["ssh.session_closed", "unauthorized"],
  ]);
  await database.close();
});
