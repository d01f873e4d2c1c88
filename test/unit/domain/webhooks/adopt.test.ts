/** Webhooks of before hosts shared them: what each was, and how far it was, is so after it was taken over. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Log } from "../../../../daemon/core/log.ts";
import type { Connection } from "../../../../daemon/db/client.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { adoptFormer } from "../../../../daemon/domain/webhooks/adopt.ts";
import type { WebhookDeps } from "../../../../daemon/domain/webhooks/deps.ts";
import { WebhookSecrets } from "../../../../daemon/domain/webhooks/secrets.ts";
import { getProgress, getWebhook, listFormer, listGone } from "../../../../daemon/domain/webhooks/store.ts";
import type { OrgId, WebhookId } from "../../../../shared/ids.ts";
import { auditDatabase, ORG } from "../audit/audit-fixture.ts";

const ID = "whk_former" as WebhookId;
const URL_OF_IT = "https://receiver.test/hooks/of-a-secret";
const COLUMNS =
  "webhook_id, org_id, url, types, secret_number, created_at, created_by_type, created_by_id, updated_at, seq, sent_count, missed_count, failed_count";

let home: string;
let connection: Connection;
let database: Database;
let secrets: WebhookSecrets;
let hasOrg: boolean;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-adopt-"));
  connection = auditDatabase();
  database = makeDatabase(connection);
  secrets = new WebhookSecrets(join(home, "key"));
  hasOrg = true;
  connection.execute("PRAGMA foreign_keys = OFF");
  connection.execute(
    `INSERT INTO webhooks_former (${COLUMNS}) VALUES ('${ID}', '${ORG}', '${URL_OF_IT}', '["room."]', 3, 'a', 'key', 'kid_1', 'b', 41, 40, 1, 2)`,
  );
});

afterEach(async () => {
  await database.close();
  rmSync(home, { recursive: true });
});

/** The first times hosts cannot agree. */
async function adopt(failures: number, signal: AbortSignal): Promise<number> {
  let left = failures;
  const shared: Database = {
    ...database,
    commit: async (work) => {
      if (left-- > 0) throw new Error("the directory is away");
      return await database.commit(work);
    },
  };
  const log = { warn: () => {} } as unknown as Log;
  const deps = {
    database,
    directory: { database: shared, onChange: () => {} },
    hasOrg: () => hasOrg,
    isMakerGood: () => true,
    log,
  } as unknown as WebhookDeps;
  let told = 0;
  await adoptFormer(deps, secrets, { adopted: () => void told++, signal });
  return told;
}

test("is sealed, keeps its secret, and goes on where it was", async () => {
  expect(await adopt(0, new AbortController().signal)).toBe(1);
  const row = getWebhook(database.queries, ORG as OrgId, ID);
  if (!row) throw new Error("it is gone");
  expect(row).toMatchObject({ types: ["room."], secret_number: 3, disabled_reason: null, renewed_at: "b" });
  expect(JSON.stringify(row)).not.toContain("receiver.test");
  expect(secrets.urlOf(row)).toBe(URL_OF_IT);
  const progress = { seq: 41, sent_count: 40, missed_count: 1, failed_count: 2, failing_since: null, renewed_at: "b" };
  expect(getProgress(database.queries, ID)).toEqual({ webhook_id: ID, last_sent_at: null, ...progress });
  expect(listFormer(database.queries)).toEqual([]);
});

test("is forgotten with an organization that has ended", async () => {
  hasOrg = false;
  await adopt(0, new AbortController().signal);
  expect([listFormer(database.queries), getWebhook(database.queries, ORG as OrgId, ID)]).toEqual([[], undefined]);
});

test("waits where hosts cannot agree, and ends with the daemon", async () => {
  const ending = new AbortController();
  const adopting = adopt(1, ending.signal);
  ending.abort();
  expect(await adopting).toBe(1);
  expect(listFormer(database.queries)).toHaveLength(1);
});

test("a URL is sealed for one webhook alone", () => {
  const sealed_url = secrets.seal(ID, URL_OF_IT);
  expect(secrets.urlOf({ webhook_id: "whk_other" as WebhookId, sealed_url })).toBeNull();
  expect(secrets.seal(ID, URL_OF_IT)).not.toBe(sealed_url);
});

test("what waits of one that was not taken over yet is nobody's to forget", () => {
  connection.execute(
    `INSERT INTO webhook_deliveries VALUES ('${ID}', 'evt_1', 1, 't', 'a', 'waiting', 1, NULL, 'b', NULL, NULL), ('whk_gone', 'evt_2', 1, 't', 'a', 'waiting', 1, NULL, 'b', NULL, NULL)`,
  );
  expect(listGone(database.queries)).toEqual(["whk_gone"]);
});
