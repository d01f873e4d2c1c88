/** Our handshake with a server in a guest, and invalid replies to it. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { offer } from "../../../../daemon/domain/ports/websocket/handshake.ts";
import { BadMessage } from "../../../../daemon/wire/http1/bad-message.ts";
import type { Header } from "../../../../daemon/wire/http1/headers.ts";

const KEY = `key-${"A1".repeat(21)}z`;

/** Reply of a server that accepts the offer, with these headers added or replaced. */
function answerTo(offered: ReturnType<typeof offer>, more: Record<string, string> = {}): { headers: Header[] } {
  const key = new Map(offered.headers).get("sec-websocket-key");
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const headers = { upgrade: "WebSocket", "sec-websocket-accept": accept, ...more };
  return { headers: Object.entries(headers) };
}

test.each([
  [null, undefined],
  ["a, b", "a, b"],
  [`a, ${KEY}`, "a"],
  [`roomd.token.ttk_${"x".repeat(43)}`, undefined],
  [" , ", undefined],
])("of the subprotocols %s the server is offered %s", (protocols, expected) => {
  expect(new Map(offer(protocols).headers).get("sec-websocket-protocol")).toBe(expected);
});

test("the accepted subprotocol is one of the offered ones", () => {
  const offered = offer("a, b");
  expect(offered.accepted(answerTo(offered))).toBeNull();
  expect(offered.accepted(answerTo(offered, { "sec-websocket-protocol": "b" }))).toBe("b");
});

test.each([
  ["another subprotocol", { "sec-websocket-protocol": "c" }],
  ["an extension", { "sec-websocket-extensions": "permessage-deflate" }],
  ["another protocol", { upgrade: "h2c" }],
  ["the answer to another key", { "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" }],
])("%s is rejected", (_, more) => {
  const offered = offer("a");
  expect(() => offered.accepted(answerTo(offered, more))).toThrow(BadMessage);
});
