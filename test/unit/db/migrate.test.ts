/** Migrations of the database: from nothing, from every version to the latest, and from no unknown version. */
import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import {
  INITIAL_VERSION,
  latestVersion,
  MIGRATIONS,
  type Migration,
  migrate,
  whyUnknown,
} from "../../../daemon/db/migrate.ts";

/** Migrations of versions to come: a column, rows that are rewritten, and a table that another replaces. */
const NEXT: readonly Migration[] = [
  ...MIGRATIONS,
  { sql: "ALTER TABLE orgs ADD COLUMN colour TEXT NOT NULL DEFAULT 'none'" },
  {
    sql: `CREATE TABLE agents_next (room_uid TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (room_uid, agent_id)) STRICT, WITHOUT ROWID;`,
    fills: [
      {
        name: "orgs.colour",
        table: "orgs",
        key: ["org_id"],
        change: "UPDATE orgs SET colour = 'of ' || name WHERE $piece",
      },
      {
        name: "agents_next",
        table: "agents",
        key: ["room_uid", "agent_id"],
        change: "INSERT OR IGNORE INTO agents_next SELECT room_uid, agent_id FROM agents WHERE $piece",
      },
    ],
  },
  { sql: "DROP TABLE agents; ALTER TABLE agents_next RENAME TO agents", after: ["orgs.colour", "agents_next"] },
];

/** A database with the first `count` migrations. */
function opened(count: number): Connection {
  const connection = openConnection(":memory:");
  if (count > 0) migrate(connection, { migrations: NEXT.slice(0, count) });
  return connection;
}
const schemaOf = ({ queries }: Connection) =>
  queries.all<{ name: string; sql: string }>(sql`SELECT name, sql FROM sqlite_schema ORDER BY name`);

describe("migrate", () => {
  test.each([...NEXT.keys(), NEXT.length])("after %i migrations gives the same schema as a new database", (count) => {
    const [fresh, old] = [opened(0), opened(count)];
    migrate(fresh, { migrations: NEXT });
    migrate(old, { migrations: NEXT });
    expect(schemaOf(old)).toEqual(schemaOf(fresh));
    expect(old.pragma("user_version")).toBe(latestVersion(NEXT));
    migrate(old, { migrations: NEXT });
    expect(schemaOf(old)).toEqual(schemaOf(fresh));
  });

  test("keeps the rows", () => {
    const old = opened(1);
    old.execute("INSERT INTO orgs (org_id, name, plan, created_at) VALUES ('org_1', 'one', 'free', 't')");
    old.execute("INSERT INTO agents VALUES ('rom_1', 'a', '[]', 't')");
    migrate(old, { migrations: NEXT });
    expect(old.queries.all(sql`SELECT org_id, colour FROM orgs`)).toEqual([{ org_id: "org_1", colour: "of one" }]);
    expect(old.queries.all(sql`SELECT * FROM agents`)).toEqual([{ room_uid: "rom_1", agent_id: "a" }]);
  });

  test.each([latestVersion() + 1, 1, INITIAL_VERSION - 1])(
    "refuses a database of version %i, and leaves it unchanged",
    (version) => {
      const unknown = opened(0);
      unknown.execute(`PRAGMA user_version = ${version}`);
      expect(() => migrate(unknown)).toThrow(String(whyUnknown(version)));
      expect([schemaOf(unknown), unknown.pragma("user_version")]).toEqual([[], version]);
    },
  );

  test("calls the hook before a change, and only if there is one", () => {
    const refuse = () => {
      throw new Error("not now");
    };
    const old = opened(NEXT.length - 1);
    const before = schemaOf(old);
    expect(() => migrate(old, { beforeChange: refuse, migrations: NEXT })).toThrow("not now");
    expect([schemaOf(old), old.pragma("user_version")]).toEqual([before, latestVersion(NEXT) - 1]);
    migrate(opened(NEXT.length), { beforeChange: refuse, migrations: NEXT });
  });

  test("extends the start timeout, in proportion to the size of the database", () => {
    const extendedBy = (rows: number) => {
      const old = opened(1);
      for (let row = 0; row < rows; row++)
        old.execute(`INSERT INTO agents VALUES ('${"r".repeat(4000)}', '${row}', '[]', 't')`);
      const extensions: number[] = [];
      migrate(old, { migrations: NEXT, extendStart: (ms) => void extensions.push(ms) });
      return extensions;
    };
    const [small, large] = [extendedBy(0), extendedBy(4000)];
    // For each migration, and for the fills that the last one waits for.
    expect(small.length).toBe(4);
    expect(small.every((ms) => ms >= 60_000)).toBe(true);
    expect(Math.max(...large)).toBeGreaterThan(Math.max(...small) + 1_000);
  });

  test("changes nothing if it fails", () => {
    const broken = opened(0);
    // A table of that name is in the way of one of the initial schema.
    broken.execute("CREATE TABLE idempotency (x)");
    expect(() => migrate(broken)).toThrow();
    expect(schemaOf(broken).map(({ name }) => name)).toEqual(["idempotency"]);
    expect(broken.pragma("user_version")).toBe(0);
  });
});
