/** How answers are written: with long texts piece by piece, and the same as in one go. */
import { expect, test } from "vitest";
import { toResponse } from "../../../daemon/edge/http/reply.ts";

const answered = (body: object) =>
  toResponse(
    { kind: "done", status: 200, done: { outcome: "ok", body }, location: null, replayed: false, rate: null },
    "req_1",
    "host",
    null,
  );

test("a response with long texts is the same JSON, and no piece is written before the previous is read", async () => {
  const long = { n: 1, none: null, gone: undefined, list: ["é", { a: 1 }], text: "", short: "\n" };
  for (const text of ['\u0001é"\\'.repeat(50_000), "x😀".repeat(50_000), "\ud800".repeat(70_000)]) {
    const response = answered({ ...long, text, again: text });
    expect(response.headers.get("content-type")).toBe("application/json");
    const pieces: Uint8Array[] = [];
    for await (const piece of response.body ?? []) pieces.push(piece);
    expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(6 * 64 * 1024);
    expect(JSON.parse(Buffer.concat(pieces).toString())).toEqual(
      JSON.parse(JSON.stringify({ ...long, text, again: text })),
    );
  }
  expect(await answered({ n: 1, text: "x" }).text()).toBe('{"n":1,"text":"x"}');
});
