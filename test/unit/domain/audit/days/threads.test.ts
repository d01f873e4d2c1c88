/** Reader threads over closed days: an export continues while the days that it reads are closed, and has each record once. */
import { expect, test } from "vitest";
import { makeReaders } from "../../../../../daemon/compose/readers.ts";
import { parsed } from "../../../../../daemon/core/call/operation.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { readLines, readPage, readStretch } from "../../../../../daemon/domain/audit/reading/reads.ts";
import { listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import { ORG } from "../audit-fixture.ts";
import { Days } from "./days-fixture.ts";

const by = { owner: "host", signal: new AbortController().signal } as const;
const DAYS = [0, 1, 2, 3, 4, 5];

test.each(["asc", "desc"] as const)(
  "an export in order %s while days are closed has each record once",
  async (order) => {
    await using days = new Days();
    // More than the parts that are sent before the first is taken.
    for (const day of DAYS) await days.add(day, 2_000);
    const expected = listAudit(days.queries, { org_id: ORG, order, limit: 100_000 }).map(({ seq }) => seq);
    const reads = makeReaders(days.database, days.file, makeLog("error"));
    await reads.started();
    expect(reads.threads).toBeGreaterThan(0);
    try {
      const lines = reads.lines(readLines, { scan: { org_id: ORG, order }, limit: null }, by);
      let text = Buffer.from((await lines.next()).value ?? "").toString();
      await days.close();
      for await (const bytes of lines) text += Buffer.from(bytes).toString();
      expect(
        text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).seq),
      ).toEqual(expected);
      // All of it is in closed days by now.
      const all = listAudit(days.queries, { org_id: ORG, order, limit: 100_000 });
      const page = parsed(await reads.read(readPage, { kind: "", scan: { org_id: ORG, order }, limit: 1000 }, by));
      expect(page.items.map(({ audit_id }) => audit_id)).toEqual(all.slice(0, 1000).map(({ audit_id }) => audit_id));
      const [first] = parsed(
        await reads.read(readStretch, { org_id: ORG, room_uid: "rom_2", after: 1500, last: 99_999 }, by),
      );
      const seqs = all.filter(({ seq, room_uid }) => seq > 1500 && room_uid === "rom_2").map(({ seq }) => seq);
      expect(first?.seq).toBe(Math.min(...seqs));
    } finally {
      await reads.close();
    }
  },
  60_000,
);
