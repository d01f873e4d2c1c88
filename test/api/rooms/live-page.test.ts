/** The page's own connection, as its program opens it: streams over one WebSocket, or separate requests if no WebSocket can be opened. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Visitor } from "../../harness/browser/visitor.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../calls.ts";

/** A program of browsers: its types are not those of this one. */
const PROGRAM = join(import.meta.dirname, "../../../daemon/web/data/socket.ts");
interface Stream {
  headers: Headers;
  body: AsyncIterable<Uint8Array>;
}

let daemon: TestDaemon;
let openStream: (path: string, signal: AbortSignal) => Promise<Stream>;
const real = { WebSocket: globalThis.WebSocket, fetch: globalThis.fetch };
const sockets: WebSocket[] = [];
const fetched: string[] = [];
let isBlocked = false;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("r");
  const owner = await Visitor.owner(daemon);
  // A browser adds the cookie and the origin of its page.
  const headers = { cookie: owner.headers.cookie ?? "", origin: daemon.url };
  class PageSocket extends real.WebSocket {
    constructor(url: string) {
      super(isBlocked ? "ws://127.0.0.1:1/" : url, { headers } as never);
      sockets.push(this);
    }
  }
  const ofPage = (path: string, init: RequestInit = {}) => {
    if (!path.startsWith("/")) return real.fetch(path, init);
    fetched.push(path);
    return real.fetch(daemon.url + path, { ...init, headers: { ...(init.headers as object), ...owner.headers } });
  };
  Object.assign(globalThis, {
    document: { hidden: false },
    location: { origin: daemon.url },
    WebSocket: PageSocket,
    fetch: ofPage,
  });
  ({ openStream } = await import(PROGRAM));
});
afterAll(async () => {
  Object.assign(globalThis, real);
  await daemon.stop();
});

const NEVER = () => new AbortController();

/** The lines of a stream as they come. */
function linesOf({ body }: Stream): { lines: Record<string, unknown>[]; over: Promise<unknown> } {
  const lines: Record<string, unknown>[] = [];
  const read = async () => {
    let rest = "";
    for await (const bytes of body) {
      const whole = (rest + new TextDecoder().decode(bytes)).split("\n");
      rest = whole.pop() ?? "";
      lines.push(...whole.map((line) => JSON.parse(line)));
    }
  };
  return { lines, over: read().catch((error: unknown) => error) };
}

test("several streams share one socket, each with its own lines, until each is aborted", async () => {
  const [events, now] = [NEVER(), NEVER()];
  const first = await openStream("/v1/rooms/r/events", events.signal);
  const second = await openStream("/v1/rooms/r/now", now.signal);
  expect([sockets.length, fetched]).toEqual([1, []]);
  expect(first.headers.get("x-roomd-host")).toBeTruthy();
  const [roomEvents, state] = [linesOf(first), linesOf(second)];
  await daemon.ok("POST", "/v1/rooms/r/drive/mkdir", { path: "/made" });
  await until(
    async () => roomEvents.lines,
    (lines) => lines.some(({ event }) => event === "drive.created" || String(event).startsWith("drive.")),
  );
  await until(
    async () => state.lines,
    (lines) => lines.some(({ type }) => type === "now"),
  );
  events.abort();
  expect(await roomEvents.over).toMatchObject({ name: "AbortError" });
  // The other stream continues.
  await daemon.ok("GET", "/v1/rooms/r/messages?agent_id=alice");
  expect(state.lines.some(({ type }) => type === "error")).toBe(false);
  now.abort();
  await state.over;
});

test("a refusal is thrown with its problem document", async () => {
  await expect(openStream("/v1/rooms/nope/events", NEVER().signal)).rejects.toMatchObject({
    problem: { code: "room_not_found", status: 404 },
  });
  expect(fetched).toEqual([]);
});

test("a broken socket ends its streams, and the next stream opens another", async () => {
  const stream = linesOf(await openStream("/v1/rooms/r/now", NEVER().signal));
  await until(
    async () => stream.lines,
    (lines) => lines.length > 0,
  );
  const before = sockets.length;
  sockets.at(-1)?.close();
  expect(await stream.over).toBeUndefined();
  const left = NEVER();
  const again = linesOf(await openStream("/v1/rooms/r/now", left.signal));
  await until(
    async () => again.lines,
    (lines) => lines.length > 0,
  );
  expect(sockets.length).toBe(before + 1);
  sockets.at(-1)?.close();
  await again.over;
});

test("without WebSocket a stream is a fetch", async () => {
  isBlocked = true;
  const left = NEVER();
  const stream = linesOf(await openStream("/v1/rooms/r/now", left.signal));
  await until(
    async () => stream.lines,
    (lines) => lines.some(({ type }) => type === "now"),
  );
  expect(fetched).toEqual(["/v1/rooms/r/now"]);
  left.abort();
  await stream.over;
});
