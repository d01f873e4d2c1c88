import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { locally } from "../../../daemon/db/dry-run.ts";
import { SharedRows, whole } from "../../../daemon/db/shared-rows.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";

let connection: Connection;
let database: Database;
let shared: SharedRows;

beforeEach(() => {
  connection = openConnection(":memory:");
  connection.execute("CREATE TABLE orgs (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, size REAL, note TEXT) STRICT");
  connection.execute(
    "CREATE TABLE keys (org TEXT NOT NULL REFERENCES orgs (id), n INTEGER NOT NULL, PRIMARY KEY (org, n)) STRICT",
  );
  connection.execute("CREATE TABLE records (text TEXT NOT NULL)");
  database = makeDatabase(connection);
  shared = new SharedRows(database.queries, [whole("orgs"), { name: "keys", but: { column: "org", is: "own" } }]);
});

afterEach(() => database.close());

const run = (text: string) => (queries: Database["queries"]) => void queries.run(sql.raw(text));
const rowsOf = (table: string) => database.queries.all<Record<string, unknown>>(sql.raw(`SELECT * FROM ${table}`));

function rehearse(works: ((queries: Database["queries"]) => unknown)[]) {
  const changes: unknown[] = [];
  let taken = () => {};
  const done = database.rehearse(
    works.map((work) => (queries: Database["queries"]) => {
      const changed = shared.try();
      taken = () => changes.push(changed());
      return work(queries);
    }),
    () => taken(),
  );
  return { done, changes };
}

describe("rows that hosts share", () => {
  test("a dry run returns its changes and changes nothing", () => {
    const { done, changes } = rehearse([
      run("INSERT INTO orgs VALUES ('a', 'one', 1.5, NULL)"),
      (queries) => {
        run("INSERT INTO keys VALUES ('a', 7)")(queries);
        run("UPDATE orgs SET name = 'two' WHERE id = 'a'")(queries);
        return "told";
      },
    ]);
    expect(done).toMatchObject([{ steps: [] }, { value: "told" }]);
    expect(changes).toEqual([
      [{ tbl: "orgs", key: '["a"]', row: '{"id":"a","name":"one","size":1.5,"note":null}' }],
      [
        { tbl: "keys", key: '["a",7]', row: '{"org":"a","n":7}' },
        { tbl: "orgs", key: '["a"]', row: '{"id":"a","name":"two","size":1.5,"note":null}' },
      ],
    ]);
    expect([rowsOf("orgs"), rowsOf("keys")]).toEqual([[], []]);
  });

  test("a failed change leaves nothing to later ones, and local writes wait", () => {
    const seen: string[] = [];
    const { done } = rehearse([
      (queries) => {
        run("INSERT INTO orgs VALUES ('a', 'one', NULL, NULL)")(queries);
        throw new Error("refused");
      },
      (queries) => {
        run("INSERT INTO orgs VALUES ('b', 'one', NULL, NULL)")(queries);
        locally(queries, () => seen.push("step"));
      },
    ]);
    expect(done[0]).toMatchObject({ error: { message: "refused" } });
    expect(seen).toEqual([]);
    if (done[1] && "steps" in done[1]) for (const step of done[1].steps) step(database.queries);
    expect(seen).toEqual(["step"]);
  });

  test("a text that PostgreSQL cannot store is rejected alone", () => {
    const { done } = rehearse([
      run("INSERT INTO orgs VALUES ('a', 'one' || char(0), NULL, NULL)"),
      run("INSERT INTO orgs VALUES ('b', 'two', NULL, NULL)"),
    ]);
    expect(done).toMatchObject([{ error: { code: "validation_failed" } }, { steps: [] }]);
  });

  test("only rounds change them, and a dry run changes nothing else", async () => {
    await expect(database.commit(run("INSERT INTO orgs VALUES ('a', 'one', NULL, NULL)"))).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/: orgs$/) },
    });
    await database.commit(run("INSERT INTO records VALUES ('one')"));
    const both = (queries: Database["queries"]) => {
      run("INSERT INTO orgs VALUES ('a', 'one', NULL, NULL), ('b', 'two', NULL, NULL)")(queries);
      run("UPDATE orgs SET size = 1")(queries);
    };
    const { done } = rehearse([
      run("INSERT INTO records VALUES ('two')"),
      (queries) => [both(queries), run("INSERT INTO records VALUES ('two')")(queries)],
      both,
    ]);
    const refused = { error: { message: expect.stringContaining("unshared rows") } };
    expect(done).toMatchObject([refused, refused, { steps: [] }]);
    expect(rowsOf("records")).toEqual([{ text: "one" }]);
  });

  test("a table may also have rows of a single host", async () => {
    const org = (id: string) => ({ tbl: "orgs", key: `["${id}"]`, row: JSON.stringify({ id, name: id }) });
    await database.commit(() => shared.bring([org("own"), org("a")]));
    await database.commit(run("INSERT INTO keys VALUES ('own', 1)"));
    await expect(database.commit(run("INSERT INTO keys VALUES ('a', 1)"))).rejects.toThrow();
    expect(rowsOf("keys")).toEqual([{ org: "own", n: 1 }]);
    expect(shared.all().map(({ tbl }) => tbl)).toEqual(["orgs", "orgs"]);
  });

  test("rows that swap a name, name each other or are deleted are merged", async () => {
    const bring = (rows: Parameters<SharedRows["bring"]>[0]) => database.commit(() => shared.bring(rows));
    const org = (id: string, name: string) => ({
      tbl: "orgs",
      key: `["${id}"]`,
      row: JSON.stringify({ id, name, size: 2, later: "x" }),
    });
    await bring([{ tbl: "keys", key: '["a",1]', row: '{"org":"a","n":1}' }, org("a", "one"), org("b", "two")]);
    await bring([org("a", "two"), org("b", "one"), { tbl: "unknown", key: "[]", row: "{}" }]);
    expect(rowsOf("orgs")).toEqual([
      { id: "a", name: "two", size: 2, note: null },
      { id: "b", name: "one", size: 2, note: null },
    ]);
    expect(shared.all()).toHaveLength(3);
    await bring([
      { tbl: "keys", key: '["a",1]', row: null },
      { tbl: "orgs", key: '["a"]', row: null },
    ]);
    expect([rowsOf("orgs"), rowsOf("keys")]).toEqual([[{ id: "b", name: "one", size: 2, note: null }], []]);
  });
});
