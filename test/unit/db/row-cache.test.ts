/** Rows that are remembered: until this process forgets them, or another has written. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openConnection } from "../../../daemon/db/client.ts";
import { RowCache } from "../../../daemon/db/row-cache.ts";

test("a row is read once, until it may have been changed by this or another process", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "roomd-remembered-")), "roomd.db");
  const [own, other] = [openConnection(file), openConnection(file)];
  const remembered = new RowCache<string>();
  let row: string | undefined = "first";
  let callCount = 0;
  const get = () =>
    remembered.get(own.queries, "name", () => {
      callCount++;
      return row;
    });
  expect([get(), get(), callCount]).toEqual(["first", "first", 1]);

  row = "second";
  own.execute("CREATE TABLE own (column TEXT)");
  expect([get(), callCount]).toEqual(["first", 1]);
  remembered.forget(own.queries);
  expect([get(), callCount]).toEqual(["second", 2]);

  row = "third";
  other.execute("CREATE TABLE others (column TEXT)");
  await new Promise(setImmediate);
  expect([get(), get(), callCount]).toEqual(["third", "third", 3]);

  // An absent row may be inserted later: absence is not cached.
  row = undefined;
  remembered.forget(own.queries);
  expect([get(), get(), callCount]).toEqual([undefined, undefined, 5]);
  for (const connection of [own, other]) connection.close();
});
