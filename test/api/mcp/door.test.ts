/** The MCP transport from outside: authentication, Host and Origin checks, and accepted messages. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectMcp } from "../../harness/clients/mcp-client.ts";
import { TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, overSocket, run } from "../calls.ts";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
const ACCEPTS = { accept: "application/json, text/event-stream", "content-type": "application/json" };

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("taken");
});
afterAll(() => daemon.stop());

const post = (headers: Record<string, string> = {}, body: string | Uint8Array<ArrayBuffer> = LIST): Promise<Answer> =>
  bare(daemon, "POST", "/mcp", { ...ACCEPTS, ...bearer(daemon.apiKey), ...headers }, body);

/** The structured content of one call, by a key. */
async function call(key: string, name: string, args: Record<string, unknown>): Promise<Json> {
  const client = await connectMcp(daemon, { key });
  try {
    return await client.call(name, args);
  } finally {
    await client.close();
  }
}

describe("without a valid key", () => {
  test.each([
    ["none", {}, "missing_credentials"],
    ["an unknown key", bearer(`key-${"A".repeat(43)}`), "invalid_api_key"],
    ["the operator's key", null, "invalid_api_key"],
  ])("%s gets 401", async (_, headers, code) => {
    const {
      status,
      body,
      headers: answered,
    } = await bare(daemon, "POST", "/mcp", { ...ACCEPTS, ...(headers ?? bearer(daemon.operatorKey)) }, LIST);
    expect({ status, code: body.code }).toEqual({ status: 401, code });
    expect(answered.get("www-authenticate")).toMatch(/^Bearer/);
  });

  test("a revoked key is refused immediately, over stdio with an explanation", async () => {
    const { key, key_id } = await makeKey(daemon);
    const client = await connectMcp(daemon, { key });
    await run(daemon, "key", "revoke", key_id);
    await expect(client.call("room_list")).rejects.toThrow("invalid_api_key");
    await client.close();
    const { status, stderr } = await daemon.cli(["mcp"], "", { ROOMD_API_KEY: key });
    expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining("key") });
  });
});

test("stdio reports that no service is reachable", async () => {
  const { status, stderr } = await daemon.cli(["mcp"], "", { ROOMD_URL: "http://127.0.0.1:1" });
  expect({ status, stderr }).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("http://127.0.0.1:1"),
  });
});

describe("hosts and pages", () => {
  const asHost = async (host: string) => {
    const head = `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${daemon.apiKey}\r\nAccept: ${ACCEPTS.accept}\r\nContent-Type: application/json`;
    const text = await overSocket(
      daemon,
      `${head}\r\nContent-Length: ${LIST.length}\r\nConnection: close\r\n\r\n${LIST}`,
    );
    return Number(text.split(" ")[1]);
  };

  test("an unknown name that resolves to the service is refused", async () => {
    expect([await asHost("rebound.example:8080"), await asHost("localhost:1"), await asHost("[::1]:1")]).toEqual([
      403, 200, 200,
    ]);
  });

  test("a page of another origin is refused", async () => {
    for (const origin of ["https://evil.example", "null"]) {
      const { status, body } = await post({ origin });
      expect({ origin, status, code: body.code }).toEqual({ origin, status: 403, code: "source_mismatch" });
    }
    expect((await post({ origin: daemon.url })).status).toBe(200);
  });
});

describe("messages", () => {
  test.each([
    ["is not JSON", "{", 400, "invalid_json"],
    ["is a batch", `[${LIST}]`, 400, "invalid_body"],
    ["is too large", new Uint8Array(23 * 1024 * 1024 + 1), 413, "body_too_large"],
  ])("a message that %s is refused", async (_, body, status, code) => {
    const answer = await post({}, body);
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  });

  test("another content type or method is refused", async () => {
    expect((await post({ "content-type": "text/plain" })).body.code).toBe("unsupported_media_type");
    for (const method of ["GET", "PUT"]) {
      const { status, headers } = await bare(daemon, method, "/mcp", { ...ACCEPTS, ...bearer(daemon.apiKey) });
      expect({ method, status, allow: headers.get("allow") }).toEqual({ method, status: 405, allow: "POST, DELETE" });
    }
  });

  test("arguments have the same limits as the operation's body", async () => {
    const large = { room_id: "taken", source: "a", destination: "a", payload: "x".repeat(2 * 1024 * 1024) };
    expect(await call(daemon.apiKey, "agent_send", large)).toMatchObject({
      ok: false,
      status: 413,
      code: "body_too_large",
    });
    const file = { room_id: "taken", path: "/large", content_b64: "A".repeat(20 * 1024 * 1024) };
    expect(await call(daemon.apiKey, "fs_write", file)).toMatchObject({
      ok: true,
      result: { size_bytes: 15 * 1024 * 1024 },
    });
  });

  test("unknown arguments are refused safely by every tool", async () => {
    const odd = { __proto__: null, constructor: { prototype: 1 }, room_id: { toString: 1 } };
    for (const { name } of TOOL_LIST)
      expect(await call(daemon.apiKey, name, odd)).toMatchObject({ ok: false, status: 422 });
  });
});
