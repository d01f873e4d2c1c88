/** The verdict on the chains of several hosts: a chain that lacks a record named by another is broken there. */
import { expect, test } from "vitest";
import { MAX_NAMED, type VerdictPart } from "../../../../daemon/domain/audit/index.ts";
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
    expect(shown).toEqual({
      ...{ ok: false, from_seq: 1, to_seq: 60, broken_at: 20 },
      warnings: ["Records of the host host-2 name record 20 of host-1, which host-1 lacks."],
    });
    expect(hosts).toContainEqual({ host: "host-1", ok: false, from_seq: 1, to_seq: 60, broken_at: 20 });
    expect(hosts).toContainEqual({ host: "host-2", ok: true, from_seq: 1, to_seq: 60, broken_at: null });
  }
});

test("an earlier break of the chain itself comes first", () => {
  const broken = partOf("host-1", { ok: false, broken_at: 7 });
  expect(merged(broken, partOf("host-2", { contradicts: [{ host: "host-1", seq: 20 }] })).broken_at).toBe(7);
});

test.each([
  ["no list", "host-1"],
  ["no records", [{ host: "host-1" }, null]],
  ["a seq that is no number", [{ host: "host-1", seq: "20" }]],
  ["no seq of a record", [{ host: "host-1", seq: -1 }]],
  ["more than a host compares", Array(MAX_NAMED + 1).fill({ host: "host-1", seq: 20 })],
  ["records of no host of the service", [{ host: "host-3", seq: 20 }]],
])("contradictions with %s are ignored", (_, contradicts) => {
  const { ok, warnings } = merged(partOf("host-1"), partOf("host-2", { contradicts } as never));
  expect([ok, warnings]).toEqual([true, undefined]);
});
