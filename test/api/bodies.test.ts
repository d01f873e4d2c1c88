/** Bodies as they come over the wire: in parts, by length or in chunks, too long, and cut off. */
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../harness/daemon.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

/** Sends a request to create a room in these parts, each in a separate packet. Returns the status line. */
async function send(framing: string, parts: readonly string[], end = false): Promise<string> {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
    if (answer.includes("\r\n\r\n")) socket.end();
  });
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  const head = `POST /v1/rooms HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${daemon.apiKey}\r\n`;
  socket.write(`${head}Content-Type: application/json\r\n${framing}\r\n\r\n`);
  for (const part of parts) {
    // The service processes the part before the next one arrives.
    await Bun.sleep(50);
    // A refusal comes before the whole body.
    if (socket.writableEnded) break;
    socket.write(part);
  }
  if (end) socket.destroy();
  await closed;
  return answer.split("\r\n")[0] ?? "";
}

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const body = (room_id: string, more = "") => JSON.stringify({ room_id, labels: { more } });

test("a body is complete whether it arrives in parts or chunks", async () => {
  const short = body("short");
  expect(await send(`Content-Length: ${short.length}`, [short.slice(0, 9), short.slice(9)])).toContain("201");
  const long = body("long", "x".repeat(255)).padEnd(20_000);
  expect(await send(`Content-Length: ${long.length}`, [long.slice(0, 900), long.slice(900)])).toContain("201");
  const chunked = body("chunked");
  const parts = [chunk(chunked.slice(0, 9)), chunk(chunked.slice(9)), "0\r\n\r\n"];
  expect(await send("Transfer-Encoding: chunked", parts)).toContain("201");
  const { items } = await daemon.ok("GET", "/v1/rooms");
  expect(items.map(({ room_id }: { room_id: string }) => room_id).sort()).toEqual(["chunked", "long", "short"]);
});

test("a body above the limit is refused, by Content-Length and by received bytes", async () => {
  expect(await send("Content-Length: 99999999", ["{"])).toContain("413");
  const piece = chunk(" ".repeat(65_536));
  expect(
    await send(
      "Transfer-Encoding: chunked",
      Array.from({ length: 20 }, () => piece),
    ),
  ).toContain("413");
});

test("a truncated body has no effect, and the service continues", async () => {
  const short = body("cut");
  expect(await send(`Content-Length: ${short.length}`, [short.slice(0, -1)], true)).toBe("");
  expect(await send("Transfer-Encoding: chunked", [chunk(short)], true)).toBe("");
  expect((await daemon.api("GET", "/v1/rooms/cut")).status).toBe(404);
});

test.each([
  ["with very many fields", 413, () => `{${Array.from({ length: 1_000_000 }, (_, n) => `"f${n}":{}`).join(",")}}`],
  ["with very many small elements", 413, () => `{"path":"x","content":[${"[],".repeat(5_000_000)}0]}`],
  ["with very many levels", 413, () => `{"path":"x","content":${"[".repeat(5_000_000)}`],
  [
    "with more unknown fields than are reported",
    422,
    () => `{${Array.from({ length: 15_000 }, (_, n) => `"f${n}":1`).join(",")}}`,
  ],
])("a body %s is not examined completely", async (_, status, write) => {
  await daemon.room("hostile").catch(() => {});
  const headers = { authorization: `Bearer ${daemon.apiKey}`, "content-type": "application/json" };
  const url = `${daemon.url}/v1/rooms/hostile/drive/write`;
  const answer = await fetch(url, { method: "POST", headers, body: write() });
  const problem = (await answer.json()) as { status: number; errors: unknown[] };
  expect(problem.status).toBe(status);
  expect(problem.errors.length).toBeLessThanOrEqual(51);
});

test("a message that is nested too deeply to be delivered is refused by its field", async () => {
  await daemon.room("deep");
  const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  const send = (levels: number) =>
    daemon.api("POST", "/v1/rooms/deep/messages", { source: "a", topic: "t", payload: nested(levels) });
  expect((await send(512)).status).toBe(202);
  for (const levels of [513, 5000]) {
    expect((await send(levels)).body).toMatchObject({ status: 422, errors: [{ field: "payload", code: "too_deep" }] });
  }
});
