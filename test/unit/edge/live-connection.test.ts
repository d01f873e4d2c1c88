/** A live connection takes turns: a client that sends many requests for streams holds up no other client. */
import { expect, test } from "vitest";
import { LiveConnection } from "../../../daemon/edge/live/connection.ts";
import { MAX_LIVE_STREAMS } from "../../../shared/api/overview/live.ts";

const PATH = "/v1/rooms/r/now";

function connect(ask: (path: string) => Promise<Response>) {
  const said: { id: number; type: string }[] = [];
  const closed: number[] = [];
  const connection = new LiveConnection("org:a", () => {});
  connection.start({
    say: (text) => void said.push(JSON.parse(text)),
    send: () => Promise.resolve(),
    close: (code) => void closed.push(code),
  });
  connection.askBy(ask);
  const open = (id: number, path = PATH) => connection.hear(JSON.stringify({ op: "open", id, path }));
  return { connection, said, closed, open };
}

/** Has no end. */
const silent = () => new Response(new ReadableStream({ start: () => {} }));

test("of streams requested together, a turn of the event loop opens as many as it has time for", async () => {
  let callCount = 0;
  const { connection, open, said } = connect(() => {
    callCount++;
    const end = performance.now() + 1;
    while (performance.now() < end);
    return Promise.resolve(silent());
  });
  for (let id = 1; id <= MAX_LIVE_STREAMS; id++) open(id);
  for (let microtask = 0; microtask < 100; microtask++) await null;
  expect(callCount).toBeGreaterThan(0);
  expect(callCount).toBeLessThan(MAX_LIVE_STREAMS / 2);
  await expect.poll(() => said.filter(({ type }) => type === "opened").length).toBe(MAX_LIVE_STREAMS);
  connection.left();
});

test("a client that requests hundreds of streams in a turn is disconnected, without further effects", async () => {
  const paths: string[] = [];
  const { closed, open, said } = connect((path) => {
    paths.push(path);
    return Promise.resolve(silent());
  });
  for (let id = 1; id <= 10_000; id++) open(id, "/nope");
  expect(closed).toEqual([4000]);
  expect(said.length).toBeLessThan(1000);
  open(20_000);
  await Bun.sleep(0);
  expect(paths).toEqual([]);
});

test("a stream closed before its turn is not opened", async () => {
  const paths: string[] = [];
  const { connection, open, said } = connect((path) => {
    const end = performance.now() + 8;
    while (performance.now() < end);
    paths.push(path);
    return Promise.resolve(silent());
  });
  open(1);
  open(2);
  connection.hear(JSON.stringify({ op: "close", id: 2 }));
  await expect.poll(() => said.some(({ id, type }) => id === 2 && type === "ended")).toBe(true);
  expect(paths.length).toBe(1);
  connection.left();
});

test("a refusal without a problem document, as of a proxy between hosts, ends the stream", async () => {
  const { connection, open, said } = connect(() => Promise.resolve(new Response("<html>", { status: 502 })));
  open(1);
  await expect.poll(() => said).toEqual([{ id: 1, type: "ended" }]);
  connection.left();
});
