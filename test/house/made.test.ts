/** Every table that names a maker is on the list of things that end with their maker, or its exemption has a reason. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getTableName, sql } from "drizzle-orm";
import { afterAll, describe, expect, test } from "vitest";
import { MADE } from "../../daemon/compose/made.ts";
import { openConnection } from "../../daemon/db/client.ts";
import { migrate } from "../../daemon/db/migrate.ts";
import type { MadeName } from "../../shared/api/made.ts";
import { codeOf, ROOT } from "./sources.ts";

const MAKERS =
  /^(created_by(_id)?|made_by(_id)?|maker(_id)?|owner(_id)?|ends_with|caller|user_id|key_id|first_key_id)$/;
const OPENS_NOTHING = "what it names is the organization's: it opens nothing, and access to it is checked at each call";
const EXEMPT: Record<string, string> = {
  rooms: OPENS_NOTHING,
  sandboxes: OPENS_NOTHING,
  snapshots: OPENS_NOTHING,
  checkpoints: OPENS_NOTHING,
  usage: OPENS_NOTHING,
  usage_open: OPENS_NOTHING,
  api_keys: "a key is a maker itself; endKeysBeyond ends it with its person",
  links: "invitations are dropped with the membership or role of their maker (dropInvitationsBy)",
  ssh_accesses: "a password is checked with the very key that made it at each login and every half second",
  oauth_tokens: "deleted with their grant",
  oauth_devices: "a code of ten minutes, which opens nothing without its grant",
  users: "the person",
  memberships: "the access itself",
  sessions: "ended with the membership or account (endSessions)",
  browsers: "a browser that a person has used; it admits to nothing without a session",
  passkeys: "a way to sign in of the person",
  identities: "a way to sign in of the person",
  mails: "an e-mail to the person",
  idempotency: "answers of calls, for the caller alone",
  ended_port_makers: "marks the ports of a maker as ended",
  billing_checkouts: "a purchase of the organization",
};

const connection = openConnection(":memory:");
migrate(connection);
afterAll(() => connection.close());

const listed = MADE.map(({ table }) => getTableName(table));
const columns = connection.queries.all<{ table: string; column: string }>(
  sql`SELECT m.name AS "table", c.name AS "column" FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`,
);
const named = columns.filter(({ column }) => MAKERS.test(column));

describe("a table with a creator", () => {
  test("is on the list of daemon/compose/made.ts, or exempt", () => {
    const missing = named.filter(({ table }) => !listed.includes(table) && !(table in EXEMPT));
    expect(missing.map(({ table, column }) => `${table}.${column}`)).toEqual([]);
  });

  test("is not exempt unnecessarily", () => {
    const needless = Object.keys(EXEMPT).filter(
      (name) => listed.includes(name) || !named.some(({ table }) => table === name),
    );
    expect(needless).toEqual([]);
  });
});

test("docs/accounts.md lists every kind, and whether another caller can take it over", () => {
  const page = readFileSync(join(ROOT, "docs/accounts.md"), "utf8");
  const [, section = ""] = page.split("## Makers\n");
  const rows = section
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(2);
  const entries = rows.map((row) => row.split("|").map((cell) => cell.trim()));
  const NAMED: Record<MadeName, string> = {
    ...{ webhooks: "webhook", ports: "exposed port", ssh_keys: "public SSH key", applications: "application" },
  };
  const isTakenOver = ([, , , , by = ""]: string[]) => !by.startsWith("no other person");
  expect(entries.map((cells) => [cells[1], isTakenOver(cells)]).sort()).toEqual(
    MADE.map(({ name, takeOver }) => [NAMED[name], takeOver !== null]).sort(),
  );
});

test("keys end in the file that removes the objects they created", () => {
  const ENDS = /\b(endKey|endKeysBeyond|revokeKeys)\(/;
  const files = codeOf("daemon").filter(({ text }) => ENDS.test(text));
  expect(files.map(({ path }) => path).sort()).toEqual([
    "daemon/domain/oauth/made.ts",
    "daemon/domain/orgs/changes.ts",
    "daemon/domain/orgs/store.ts",
  ]);
});
