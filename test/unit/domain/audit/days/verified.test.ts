/** Verified closed days are not read again while their files are unchanged. */
import { chmodSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { wholly } from "../../../../../daemon/core/loop/steps.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { checkChain } from "../../../../../daemon/domain/audit/chain/check.ts";
import { purgeDays } from "../../../../../daemon/domain/audit/days/close.ts";
import { VerifiedDays } from "../../../../../daemon/domain/audit/days/verified.ts";
import { AUDIT_BEGAN_MS, ORG } from "../audit-fixture.ts";
import { DAY_MS, Days } from "./days-fixture.ts";

const KEY = chainKey(ORG);
const momentOf = (day: number) => new Date(AUDIT_BEGAN_MS + day * DAY_MS).toISOString();

/** A change by a program that may write the file, without one of its size. */
function tamper(days: Days, day: number) {
  const file = join(days.directory, `2026-01-0${day + 1}.db`);
  const bytes = readFileSync(file);
  bytes.write("exe_9", bytes.indexOf(`exe_${day}_57`));
  writeFileSync(`${file}.new`, bytes);
  renameSync(`${file}.new`, file);
}

async function verify(days: Days, verified: VerifiedDays) {
  const files = await verified.filesOf(KEY);
  const walked = verified.verified(KEY, files);
  const { verdict, closed } = wholly(checkChain(days.queries, KEY, { walked }));
  if (verdict.ok && closed) verified.note(KEY, closed, files);
  return { ok: verdict.ok, from_seq: verdict.from_seq, to_seq: verdict.to_seq, since: walked?.last.seq ?? 0 };
}

test("a check skips closed days that an earlier check has verified", async () => {
  await using days = new Days();
  for (const day of [0, 1]) await days.add(day);
  await days.close();
  const verified = new VerifiedDays(days.queries);
  const first = await verify(days, verified);
  expect(first).toMatchObject({ ok: true, from_seq: 1, since: 0 });
  expect(await verify(days, verified)).toEqual({ ...first, since: first.to_seq });
  // A backup gives them further names.
  linkSync(join(days.directory, "2026-01-01.db"), join(days.home, "linked"));
  for (const day of [2, 3]) await days.add(day);
  await days.close();
  const next = await verify(days, verified);
  expect(next).toMatchObject({ ok: true, from_seq: 1, since: first.to_seq });
  expect(next.to_seq).toBeGreaterThan(first.to_seq);
  // Later records are read.
  tamper(days, 3);
  await days.reopen();
  const again = new VerifiedDays(days.queries);
  expect((await verify(days, again)).ok).toBe(false);
});

test("a changed closed day is read again, and so is a deleted one", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  await days.close();
  const verified = new VerifiedDays(days.queries);
  await verify(days, verified);
  tamper(days, 1);
  const files = await verified.filesOf(KEY);
  expect(verified.verified(KEY, files)).toBeNull();
  rmSync(join(days.directory, "2026-01-03.db"));
  expect(verified.verified(KEY, await verified.filesOf(KEY))).toBeNull();
  await days.reopen();
  expect(wholly(checkChain(days.queries, KEY, {})).verdict.ok).toBe(false);
});

test("a purge of verified days leaves an intact chain, and one of forged days does not", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  await days.close();
  const verified = new VerifiedDays(days.queries);
  const { to_seq } = await verify(days, verified);
  await purgeDays(days.deps, momentOf(1));
  const purged = await verify(days, verified);
  expect(purged).toMatchObject({ ok: true, to_seq: to_seq + 1, since: to_seq });
  expect(purged.from_seq).toBeGreaterThan(1);
  chmodSync(days.file, 0o600);
  days.connection.execute("DROP TRIGGER audit_starts_only_advance");
  days.connection.execute(`UPDATE audit_starts SET seq = seq - 1 WHERE org_key = '${ORG}'`);
  expect((await verify(days, verified)).ok).toBe(false);
});

test.each(["removed", "replaced"])("a day that is %s while it is open is noticed, also later", async (change) => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  await days.close();
  const verified = new VerifiedDays(days.queries);
  expect((await verify(days, verified)).ok).toBe(true);
  if (change === "removed") rmSync(join(days.directory, "2026-01-02.db"));
  else tamper(days, 1);
  for (let nth = 0; nth < 3; nth++) expect(await verify(days, verified)).toMatchObject({ ok: false, since: 0 });
});

test.each([
  ["a stretch", "audit_stretches_stay", "DELETE FROM audit_stretches WHERE file = 1"],
  ["a file's row", "audit_files_stay", "DELETE FROM audit_files WHERE number = 2"],
])("%s that was deleted from the database is noticed", async (_, trigger, statement) => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  await days.close();
  const verified = new VerifiedDays(days.queries);
  expect((await verify(days, verified)).ok).toBe(true);
  days.connection.execute(`DROP TRIGGER ${trigger}`);
  days.connection.execute(statement);
  for (let nth = 0; nth < 2; nth++) expect(await verify(days, verified)).toMatchObject({ ok: false, since: 0 });
});

test("a start that was deleted after a purge is noticed", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  await days.close();
  await purgeDays(days.deps, momentOf(1));
  const verified = new VerifiedDays(days.queries);
  expect((await verify(days, verified)).ok).toBe(true);
  expect((await verify(days, verified)).since).toBeGreaterThan(0);
  days.connection.execute("DROP TRIGGER audit_starts_stay");
  days.connection.execute("DELETE FROM audit_starts");
  expect(await verify(days, verified)).toMatchObject({ ok: false, since: 0 });
});
