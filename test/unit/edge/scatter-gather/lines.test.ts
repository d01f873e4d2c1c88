import { expect, test } from "vitest";
import type { EventsReply, StreamEvent } from "../../../../daemon/core/call/operation.ts";
import { type HostLines, linesOfAll, type Order } from "../../../../daemon/edge/scatter-gather/lines.ts";

const record = (seq: number, at: string): StreamEvent => ({ id: seq, data: { seq, at } });
const BROKEN: StreamEvent = { id: null, data: { type: "error", code: "host_unreachable" } };

function replyOf(...pieces: StreamEvent[][]): EventsReply {
  const events = async function* () {
    yield* pieces;
  };
  return { events: events(), cancel: () => {} };
}

const partOf = (
  chain: string,
  reply: EventsReply,
  ...again: EventsReply[]
): HostLines & { asked: (number | null)[] } => {
  const asked: (number | null)[] = [];
  const open = async (after: number | null) => {
    asked.push(after);
    const next = again.shift();
    if (!next) throw new Error("nobody there");
    return next;
  };
  return { chain, reply, open, asked };
};

async function told(parts: HostLines[], about: Partial<Order> = {}) {
  const ends: string[] = [];
  const reply = linesOfAll(parts, {
    ...{ silent: [], order: "asc", limit: Number.POSITIVE_INFINITY, slowMs: 1000 },
    ...{ end: () => ends.push("end"), brokeOff: () => ends.push("broke off"), cut: () => {} },
    ...about,
  });
  const all: unknown[] = [];
  for await (const events of reply.events) {
    for (const { data } of events) all.push("seq" in data ? `${data.seq} ${"at" in data && data.at}` : data);
  }
  return { all, ends };
}

test("lines of all hosts are merged in one order, each chain in its own", async () => {
  const a = partOf("a", replyOf([record(1, "1"), record(2, "5")], [record(3, "4")]));
  const b = partOf("b", replyOf([record(1, "2")], [{ id: null, data: { type: "ping" } }], [record(2, "5")]));
  for (const parts of [[a, b]]) {
    expect(await told(parts)).toEqual({ all: ["1 1", "1 2", "2 5", "3 4", "2 5"], ends: ["end"] });
  }
});

test("a host that disconnects before its first line is queried again", async () => {
  const a = partOf("a", replyOf([record(1, "1")], [BROKEN]), replyOf([record(2, "3")]));
  const b = partOf("b", replyOf([BROKEN]), replyOf([record(1, "2")]));
  expect(await told([a, b])).toEqual({ all: ["1 1", "1 2", "2 3"], ends: ["end"] });
  expect([a.asked, b.asked]).toEqual([[1], [null]]);
});

test("a host that disconnects later ends the list: its remaining lines would be out of order", async () => {
  const a = partOf("a", replyOf([record(1, "1")], [BROKEN]));
  const { all, ends } = await told([a, partOf("b", replyOf([record(1, "2")]))]);
  expect(all).toEqual(["1 1", { type: "error", code: "host_unreachable", retryable: true }]);
  expect(ends).toEqual(["broke off", "end"]);
});

test("a silent host is reported first, and a limit applies to all together", async () => {
  const parts = ["a", "b"].map((chain) => partOf(chain, replyOf([record(1, "1"), record(2, "2")])));
  const { all } = await told(parts, { limit: 3, silent: ["c"] });
  expect(all).toEqual([{ type: "ping", warnings: [expect.stringContaining(" c ")] }, ...["1 1", "1 1", "2 2"]]);
});
