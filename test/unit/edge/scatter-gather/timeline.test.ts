import { describe, expect, test } from "vitest";
import type { Host } from "../../../../daemon/cluster/directory.ts";
import type { EventsReply, StreamEvent } from "../../../../daemon/core/call/operation.ts";
import { chainNameOf, type Position } from "../../../../daemon/edge/scatter-gather/places.ts";
import { type HostResponse, Timeline } from "../../../../daemon/edge/scatter-gather/timeline.ts";

const hostOf = (host_id: string, joined_at = "2026-01-01T00:00:00.000Z") => ({ host_id, joined_at }) as Host;
const B = hostOf("b");
const C = hostOf("c");
const record = (seq: number, at = "here"): StreamEvent => ({ id: seq, data: { seq, at } });
const place = (seq: number): StreamEvent => ({ id: null, data: { type: "place", seq } });
const failure = (code: string): StreamEvent => ({ id: null, data: { type: "error", code } });

/** A stream that emits its given events, until it is ended. */
class Source {
  isCancelled = false;
  readonly #told: (readonly StreamEvent[])[] = [];
  #isOver = false;
  #wake = Promise.withResolvers<void>();
  readonly reply: EventsReply = {
    events: this.#events(),
    cancel: () => {
      this.isCancelled = true;
      this.end();
    },
  };

  constructor(...events: StreamEvent[]) {
    if (events.length > 0) this.tell(...events);
  }

  tell(...events: StreamEvent[]): void {
    this.#told.push(events);
    this.#wake.resolve();
  }

  end(): void {
    this.#isOver = true;
    this.#wake.resolve();
  }

  async *#events() {
    for (;;) {
      const next = this.#told.shift();
      if (next) yield next;
      else if (this.#isOver) return;
      else {
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
      }
    }
  }
}

interface Setting {
  others?: Host[];
  position?: Position;
  follow?: boolean;
  /** Responses of each host, one per request; further requests are not answered. */
  answers?: Record<string, (Source | number)[]>;
}

function timelineOf({ others = [B], position, follow = true, answers = {} }: Setting) {
  const own = new Source();
  const asked: [string, number | undefined, boolean][] = [];
  const cut: string[] = [];
  let hosts = others;
  const timeline = new Timeline({
    ...{ own: own.reply, ownName: "own", follow, slowMs: 1000, silentMs: 50 },
    position: position ?? { places: { own: 0 }, since: null },
    others: () => hosts,
    ask: async ({ host_id }, at, _until, isFirst): Promise<HostResponse> => {
      asked.push([host_id, at, isFirst]);
      const next = answers[host_id]?.shift();
      if (next === undefined) throw new Error("nobody there");
      return typeof next === "number" ? { status: next } : { status: 200, events: next.reply };
    },
    patience: (_, started) => Promise.race([started.catch(() => null), Bun.sleep(30).then(() => null)]),
    cursorOf: ({ places }) => JSON.stringify(places),
    lost: () => {},
    cut: () => cut.push("cut"),
    ended: () => cut.push("ended"),
  });
  const setHosts = (now: Host[]) => {
    hosts = now;
    timeline.look(now);
  };
  return { timeline, own, asked, cut, setHosts };
}

/** The first `count` events, in order. */
async function take({ reply }: Timeline, count: number) {
  const received: StreamEvent[] = [];
  while (received.length < count) {
    const { done, value } = await reply.events.next();
    if (done) break;
    received.push(...value);
  }
  return received.map(({ data }) => data as { seq?: number; cursor?: string; type?: string; code?: string });
}

describe("a timeline of several hosts", () => {
  test("has a position of each in the cursor of each event", async () => {
    const b = new Source(place(7), record(8, "b"));
    const { timeline, own } = timelineOf({ answers: { b: [b] } });
    own.tell(record(1));
    await timeline.start();
    const received = await take(timeline, 2);
    expect(received.map(({ seq }) => seq).sort()).toEqual([1, 8]);
    expect(JSON.parse(received.at(-1)?.cursor ?? "")).toEqual({ own: 1, [chainNameOf(B)]: 8 });
    timeline.end();
    expect([own.isCancelled, b.isCancelled]).toEqual([true, true]);
  });

  test("queries a broken host again from the last event, and reports the gap once", async () => {
    const first = new Source(place(7), record(8), failure("host_unreachable"));
    const again = new Source(place(8), record(9));
    const { timeline, asked } = timelineOf({ answers: { b: [first, again] } });
    await timeline.start();
    const received = await take(timeline, 3);
    expect(received).toMatchObject([
      { seq: 8 },
      { type: "ping", warnings: [expect.stringContaining(" b ")] },
      { seq: 9 },
    ]);
    expect(asked).toEqual([
      ["b", undefined, true],
      ["b", 8, false],
    ]);
    timeline.end();
  });

  test("treats a host without further data as silent", async () => {
    const first = new Source(place(7));
    const { timeline } = timelineOf({ answers: { b: [first, new Source(place(7), record(8))] } });
    await timeline.start();
    expect(await take(timeline, 2)).toMatchObject([{ type: "ping" }, { seq: 8 }]);
    expect(first.isCancelled).toBe(true);
    timeline.end();
  });

  test("requests no more from a host than is read", async () => {
    const b = new Source(place(0));
    for (let seq = 1; seq <= 5; seq++) b.tell(record(seq));
    const { timeline } = timelineOf({ answers: { b: [b] } });
    await timeline.start();
    await Bun.sleep(20);
    expect(await take(timeline, 1)).toMatchObject([{ seq: 1 }]);
    expect(await take(timeline, 4)).toMatchObject([{ seq: 2 }, { seq: 3 }, { seq: 4 }, { seq: 5 }]);
    timeline.end();
  });

  test("is refused if a host has purged the next event, and ends if that is found later", async () => {
    const refused = timelineOf({ answers: { b: [410] } });
    await expect(refused.timeline.start()).rejects.toMatchObject({ code: "history_gone" });
    expect([refused.own.isCancelled, refused.cut]).toEqual([true, ["ended"]]);
    const later = timelineOf({ answers: { b: [503, 410] } });
    await later.timeline.start();
    const received = await take(later.timeline, 10);
    expect(received).toMatchObject([{ type: "ping" }, { type: "error", code: "history_gone" }]);
    expect(later.own.isCancelled).toBe(true);
  });

  test("ends with the local stream, with its reason", async () => {
    const b = new Source(place(0));
    const { timeline, own, cut } = timelineOf({ answers: { b: [b] } });
    await timeline.start();
    own.tell(failure("invalid_api_key"));
    own.end();
    expect(await take(timeline, 10)).toEqual([{ type: "error", code: "invalid_api_key" }]);
    expect([b.isCancelled, cut]).toEqual([true, ["ended"]]);
  });

  test("without follow ends after all others, and lists missing hosts", async () => {
    const b = new Source(place(0), record(1));
    b.end();
    const { timeline, own, asked } = timelineOf({ follow: false, others: [B, C], answers: { b: [b] } });
    own.end();
    await timeline.start();
    const received = await take(timeline, 10);
    expect(received.filter(({ type }) => type === undefined)).toMatchObject([{ seq: 1 }]);
    expect(received.filter(({ type }) => type === "ping")).toEqual([
      { type: "ping", warnings: [expect.stringContaining(" c ")] },
    ]);
    expect(asked).toHaveLength(2);
  });

  test("reports joining hosts, and forgets leaving ones; a rejoined host has no position", async () => {
    const b = new Source(place(7), record(8));
    const c = new Source(place(0), record(1));
    const { timeline, own, asked, setHosts } = timelineOf({
      answers: { b: [b, new Source(place(0), record(1))], c: [c] },
    });
    await timeline.start();
    await take(timeline, 1);
    setHosts([B, C]);
    expect(await take(timeline, 1)).toMatchObject([{ seq: 1 }]);
    const again = hostOf("b", "2026-02-01T00:00:00.000Z");
    setHosts([C, again]);
    expect(b.isCancelled).toBe(true);
    const [first] = await take(timeline, 1);
    expect(JSON.parse(first?.cursor ?? "")).toEqual({ own: 0, [chainNameOf(C)]: 1, [chainNameOf(again)]: 1 });
    expect(asked.at(-1)).toEqual(["b", undefined, false]);
    timeline.end();
    expect([own.isCancelled, c.isCancelled]).toEqual([true, true]);
  });

  test("of a disconnected reader ends on all hosts", async () => {
    const b = new Source(place(0), record(1));
    const { timeline, own, cut } = timelineOf({ answers: { b: [b] } });
    await timeline.start();
    timeline.reply.slow?.cut();
    expect(cut).toEqual(["cut", "ended"]);
    expect([own.isCancelled, (await timeline.reply.events.next()).done]).toEqual([true, true]);
    await Bun.sleep(0);
    expect(b.isCancelled).toBe(true);
  });
});
