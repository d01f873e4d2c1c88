/** The schema's history: from nothing, from every step of it, and never from the future. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { MIGRATIONS, migrate } from "../../../daemon/db/migrate.ts";

function opened(version: number): Connection {
  const connection = openConnection(":memory:");
  for (const statements of MIGRATIONS.slice(0, version)) connection.execute(statements);
  connection.execute(`PRAGMA user_version = ${version}`);
  return connection;
}
const schemaOf = ({ queries }: Connection) =>
  queries.all<{ name: string; sql: string }>(sql`SELECT name, sql FROM sqlite_schema ORDER BY name`);

describe("migrate", () => {
  test.each([...MIGRATIONS.keys(), MIGRATIONS.length])(
    "from version %i ends where a new database begins",
    (version) => {
      const [fresh, old] = [opened(0), opened(version)];
      migrate(fresh);
      migrate(old);
      expect(schemaOf(old)).toEqual(schemaOf(fresh));
      expect(old.pragma("user_version")).toBe(MIGRATIONS.length);
      migrate(old);
      expect(schemaOf(old)).toEqual(schemaOf(fresh));
    },
  );

  test("refuses a database that a newer roomd has written, and leaves it as it is", () => {
    const future = opened(0);
    future.execute(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
    expect(() => migrate(future)).toThrow(/run the newer roomd, or restore a backup/);
    expect(schemaOf(future)).toEqual([]);
  });

  test("asks before it changes anything, and only then", () => {
    const refuse = () => {
      throw new Error("not now");
    };
    const old = opened(MIGRATIONS.length - 1);
    const before = schemaOf(old);
    expect(() => migrate(old, refuse)).toThrow("not now");
    expect([schemaOf(old), old.pragma("user_version")]).toEqual([before, MIGRATIONS.length - 1]);
    migrate(opened(MIGRATIONS.length), refuse);
  });

  test("that fails changes nothing", () => {
    const broken = opened(0);
    // A table of that name is in the way of the first migration's last.
    broken.execute("CREATE TABLE idempotency (x)");
    expect(() => migrate(broken)).toThrow();
    expect(schemaOf(broken).map(({ name }) => name)).toEqual(["idempotency"]);
    expect(broken.pragma("user_version")).toBe(0);
  });
});

test("chains that were begun before their heads were kept have them afterwards", () => {
  const old = opened(1);
  for (const [org, seq] of [
    ["org_a", 1],
    ["org_a", 2],
    ["org_b", 1],
    ["", 1],
  ] as const) {
    old.queries.run(
      sql`INSERT INTO audit (org_key, seq, audit_id, event, outcome, at, actor_type, actor_id, actor_name, source, details, prev_hash, hash)
          VALUES (${org}, ${seq}, 'evt', 'e', 'success', 't', 'a', 'b', 'c', 'cli', '{}', 'p', ${`hash ${org} ${seq}`})`,
    );
  }
  migrate(old);
  expect(old.queries.all(sql`SELECT * FROM audit_heads ORDER BY org_key`)).toEqual([
    { org_key: "", seq: 1, hash: "hash  1" },
    { org_key: "org_a", seq: 2, hash: "hash org_a 2" },
    { org_key: "org_b", seq: 1, hash: "hash org_b 1" },
  ]);
});
