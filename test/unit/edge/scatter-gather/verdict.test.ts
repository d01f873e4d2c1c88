/** The verdict on the chains of several hosts: a chain that lacks a record named by another is broken there. */
import { expect, test } from "vitest";
import type { VerdictPart } from "../../../../daemon/domain/audit/index.ts";
import { verdictOfAll } from "../../../../daemon/edge/scatter-gather/audit.ts";

const partOf = (host: string, more: Partial<VerdictPart> = {}) => ({
  ...{ host, chain: host },
  body: { ok: true, from_seq: 1, to_seq: 60, broken_at: null, ...more },
});
const merged = (...parts: ReturnType<typeof partOf>[]) => {
  const [own, ...others] = parts as [ReturnType<typeof partOf>];
  return verdictOfAll.merge(own, others, { silent: [] } as never);
};

test("a chain that lacks a named record is broken at the first one, wherever the call arrives", () => {
  const one = partOf("host-1");
  const two = partOf("host-2", { contradicts: [40, 20].map((seq) => ({ host: "host-1", seq })) });
  for (const parts of [
    [one, two],
    [two, one],
  ]) {
    const { hosts, ...shown } = merged(...parts);
    expect(shown).toEqual({ ok: false, from_seq: 1, to_seq: 60, broken_at: 20 });
    expect(hosts).toContainEqual({ host: "host-1", ok: false, from_seq: 1, to_seq: 60, broken_at: 20 });
    expect(hosts).toContainEqual({ host: "host-2", ok: true, from_seq: 1, to_seq: 60, broken_at: null });
  }
});

test("an earlier break of the chain itself comes first", () => {
  const broken = partOf("host-1", { ok: false, broken_at: 7 });
  expect(merged(broken, partOf("host-2", { contradicts: [{ host: "host-1", seq: 20 }] })).broken_at).toBe(7);
});
