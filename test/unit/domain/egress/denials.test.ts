/** Records of refused connections: the first of a kind soon, those like it together, and never more kinds than are worth reading. */
import { expect, test } from "vitest";
import { type Denial, Denials } from "../../../../daemon/domain/egress/denials.ts";
import { until } from "../../../harness/guests.ts";

const to = (host: string): Denial => ({ host, ip: null, port: 443, reason: "not_listed" });

function recorder() {
  const records: (Denial & { count: number })[] = [];
  return { records, denials: new Denials((each) => records.push(each)) };
}
const hostCounts = (records: (Denial & { count: number })[]) => records.map(({ host, count }) => [host, count]);

test("the first denial of a kind is recorded soon, also while others are counted", async () => {
  const { records, denials } = recorder();
  denials.add(to("a.example"));
  denials.add(to("a.example"));
  await until("the first denial is recorded", () => records.length === 1, 2000);
  denials.add(to("a.example"));
  denials.add(to("b.example"));
  await until("the second denial is recorded", () => records.length === 2, 2000);
  expect(hostCounts(records)).toEqual([
    ["a.example", 2],
    ["b.example", 1],
  ]);
  denials.flush();
  expect(hostCounts(records).at(-1)).toEqual(["a.example", 1]);
});

test("above 32 kinds per interval they are counted without their names", () => {
  const { records, denials } = recorder();
  for (let n = 0; n < 16; n++) denials.add(to(`${n}.example`));
  denials.flush();
  for (let n = 8; n < 40; n++) denials.add(to(`${n}.example`));
  denials.flush();
  const names = new Set(records.map(({ host }) => host));
  expect(names.size).toBe(33);
  expect(records.filter(({ reason }) => reason === "other")).toEqual([
    { host: null, ip: null, port: null, reason: "other", count: 8 },
  ]);
});
