import { describe, expect, test } from "vitest";
import type { Host } from "../../../../daemon/cluster/directory.ts";
import { makeCursor } from "../../../../daemon/core/call/cursor.ts";
import type { StreamEvent } from "../../../../daemon/core/call/operation.ts";
import type { Log } from "../../../../daemon/core/log.ts";
import { cursorAfterEvent } from "../../../../daemon/domain/audit/index.ts";
import { GatheredEvents } from "../../../../daemon/edge/scatter-gather/events.ts";
import { chainNameOf, cursorOf, type Position } from "../../../../daemon/edge/scatter-gather/places.ts";
import { orgEvents } from "../../../../shared/api/audit.ts";

const ORG = "org_1";
const HEAD = 50;
const hostOf = (host_id: string, month: number, state = "active") =>
  ({ host_id, joined_at: `2026-0${month}-01T00:00:00.000Z`, state }) as Host;
const FIRST = hostOf("first", 1);
const SELF = hostOf("self", 2);
const LAST = hostOf("last", 3);
const GONE = hostOf("gone", 5, "gone");

/** Requests to this host and the others for this cursor, and the position that this host reports to another. */
async function asked(after: string | undefined, hosts = [FIRST, SELF, LAST, GONE]) {
  const others = hosts.filter(({ host_id, state }) => host_id !== "self" && state !== "gone");
  const found: Record<string, unknown> = {};
  const own = async (input: Record<string, unknown>) => {
    found.self = input.after;
    return { outcome: "ok", events: { events: (async function* () {})(), cancel: () => {} } };
  };
  const events = new GatheredEvents({
    own: "self",
    directory: { others: () => others, hosts: () => [...hosts], host: () => SELF, onChange: () => {} },
    chains: { head: () => HEAD, upTo: () => 20 },
    slowReaderMs: 1000,
    log: { info: () => {} } as unknown as Log,
  });
  const reading = { org_id: ORG, last_event_id: null, signal: new AbortController().signal };
  const ask = async ({ host_id }: Host, query: Record<string, string>) => {
    found[host_id] = query.after;
    return { status: 503, body: null };
  };
  const done = await events.ofAll(orgEvents, ask, reading, { after, follow: false }, own);
  done.events?.cancel();
  const received: StreamEvent[] = [];
  const toHost = async () => {
    const { events: mine } = await events.forHost(reading, { after: found.last }, own);
    for await (const each of mine?.events ?? []) received.push(...each);
    return received.map(({ data }) => data);
  };
  return { found, toHost };
}

const afterOf = (seq: number) => cursorAfterEvent(ORG, seq);
const kind = `events of hosts ${ORG}`;
const cursor = (places: [Host, number][], since: number | null = null) => {
  const position: Position = {
    places: Object.fromEntries(places.map(([host, seq]) => [chainNameOf(host), seq])),
    since,
  };
  return cursorOf(kind, position);
};

describe("a cursor of several hosts", () => {
  test("queries each host from its position, and one without a position from the start", async () => {
    const { found, toHost } = await asked(
      cursor([
        [FIRST, 7],
        [SELF, 9],
      ]),
    );
    expect(found).toEqual({ first: afterOf(7), self: afterOf(9), last: "0" });
    expect(await toHost()).toEqual([{ type: "place", seq: 0 }]);
  });

  test("queries a host silent until now from the moment at which its reader came", async () => {
    const since = Date.UTC(2026, 5, 1);
    const { found, toHost } = await asked(cursor([[SELF, 9]], since));
    expect([found.self, found.first]).toEqual([afterOf(9), found.last]);
    expect(await toHost()).toEqual([{ type: "place", seq: 20 }]);
  });

  test("that is absent requests new events from all hosts", async () => {
    const { found, toHost } = await asked(undefined);
    expect(found).toEqual({ first: undefined, self: afterOf(HEAD), last: undefined });
    expect(await toHost()).toEqual([{ type: "place", seq: HEAD }]);
  });

  test("has no position in the chain of a rejoined host, and none beyond the end of a restored one", async () => {
    const again = hostOf("last", 4);
    const { found } = await asked(
      cursor([
        [LAST, 40],
        [SELF, 70],
      ]),
      [FIRST, SELF, again],
    );
    expect(found).toEqual({ first: "0", self: afterOf(HEAD), last: "0" });
  });

  test("of a former single host is a position in its chain", async () => {
    const { found } = await asked(afterOf(30));
    expect(found).toEqual({ first: afterOf(30), self: afterOf(0), last: "0" });
  });

  test.each([
    ["no list", "null"],
    ["an invalid seq", `[null,{"a":-1}]`],
    ["another invalid seq", `[null,{"a":"1"}]`],
    ["a moment that there is not", "[9007199254740991,{}]"],
    ["no JSON", "["],
  ])("is rejected with %s, though its tag is valid", async (_, text) => {
    await expect(asked(makeCursor(kind, text))).rejects.toMatchObject({ code: "invalid_cursor" });
  });
});
